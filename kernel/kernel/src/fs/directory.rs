//! Directories.

use super::{Inode, type_bits};
use crate::abi::Errno;
use crate::heap;
use crate::system::Lock;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::S_IFDIR;

/// A name in a directory, or the text of a symbolic link.
pub type Name = Vec<u8>;

/// The entries of a directory listed so far. Additions and removals meanwhile move no other entry.
#[derive(Clone, Default)]
pub struct Listed {
    /// How many, `.` and `..` among them.
    pub count: u64,
    /// The last one behind these.
    pub last: Option<Name>,
}

/// A directory.
pub struct Directory {
    /// The directory that has this one. A rename changes it.
    parent: Lock<Weak<Inode>>,
    entries: Lock<BTreeMap<Name, Arc<Inode>>>,
    /// The entries never change.
    is_fixed: bool,
}

impl Directory {
    /// An empty one.
    pub fn new(parent: Weak<Inode>) -> Self {
        Directory {
            parent: Lock::new(parent),
            entries: Lock::new(BTreeMap::new()),
            is_fixed: false,
        }
    }

    /// A directory whose entries never change.
    pub fn fixed(parent: Weak<Inode>, entries: Vec<(Name, Arc<Inode>)>) -> Self {
        Directory {
            parent: Lock::new(parent),
            entries: Lock::new(entries.into_iter().collect()),
            is_fixed: true,
        }
    }

    /// The directory that has this one; a removed one's may be gone.
    pub fn parent(&self) -> Option<Arc<Inode>> {
        self.parent.lock().upgrade()
    }

    /// The directory is in another one from now on.
    pub fn set_parent(&self, parent: &Arc<Inode>) {
        *self.parent.lock() = Arc::downgrade(parent);
    }

    /// The inode of a name.
    pub fn get(&self, name: &[u8]) -> Option<Arc<Inode>> {
        self.entries.lock().get(name).cloned()
    }

    /// Gives `inode` a name that is not there yet.
    pub fn add(&self, name: &[u8], inode: Arc<Inode>) -> Result<(), Errno> {
        match self.entries.lock().entry(name.to_vec()) {
            Entry::Occupied(_) => Err(Errno::EXIST),
            Entry::Vacant(_) if self.is_fixed => Err(Errno::NOENT),
            Entry::Vacant(_) if heap::is_short() => Err(Errno::NOSPC),
            Entry::Vacant(place) => {
                inode.attributes.links.fetch_add(1, Ordering::Relaxed);
                place.insert(inode);
                Ok(())
            }
        }
    }

    /// Gives `inode` a name, in the place of the inode that has it.
    pub fn replace(&self, name: &[u8], inode: Arc<Inode>) -> Result<Option<Arc<Inode>>, Errno> {
        self.changeable()?;
        inode.attributes.links.fetch_add(1, Ordering::Relaxed);
        let before = self.entries.lock().insert(name.to_vec(), inode);
        Ok(before.inspect(|it| it.lose_name()))
    }

    /// Refuses if the entries never change.
    pub fn changeable(&self) -> Result<(), Errno> {
        match self.is_fixed {
            true => Err(Errno::PERM),
            false => Ok(()),
        }
    }

    /// Takes a name away, if `may` allows it for the inode that has it.
    pub fn remove(
        &self,
        name: &[u8],
        may: impl FnOnce(&Inode) -> Result<(), Errno>,
    ) -> Result<Arc<Inode>, Errno> {
        self.changeable()?;
        let mut entries = self.entries.lock();
        may(entries.get(name).ok_or(Errno::NOENT)?)?;
        let removed = entries.remove(name).ok_or(Errno::NOENT)?;
        removed.lose_name();
        Ok(removed)
    }

    /// How many directories are in it.
    pub fn directories(&self) -> u32 {
        let entries = self.entries.lock();
        let is_directory = |inode: &&Arc<Inode>| type_bits(inode) == S_IFDIR;
        entries.values().filter(is_directory).count() as u32
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.lock().is_empty()
    }

    /// The name that `inode` has here.
    pub fn name_of(&self, inode: &Inode) -> Option<Name> {
        let entries = self.entries.lock();
        let found = entries.iter().find(|(_, it)| core::ptr::eq(&***it, inode));
        found.map(|(name, _)| name.clone())
    }

    /// The entry behind the listed ones, which counts as listed from now on. `own` is the
    /// directory's inode.
    pub fn next(&self, own: &Arc<Inode>, listed: &mut Listed) -> Option<(Name, Arc<Inode>)> {
        let next = match listed.count {
            0 => (b".".to_vec(), own.clone()),
            1 => (b"..".to_vec(), self.parent().unwrap_or(own.clone())),
            _ => {
                let next = self.after(listed.last.as_deref())?;
                listed.last = Some(next.0.clone());
                next
            }
        };
        listed.count += 1;
        Some(next)
    }

    /// The entry that follows `name`, in their order; without a name, the first.
    pub fn after(&self, name: Option<&[u8]>) -> Option<(Name, Arc<Inode>)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, Excluded);
        let entries = self.entries.lock();
        let next = entries.range::<[u8], _>((from, Unbounded)).next();
        next.map(|(name, inode)| (name.clone(), inode.clone()))
    }
}

impl Inode {
    /// The inode loses a name.
    fn lose_name(&self) {
        self.attributes.links.fetch_sub(1, Ordering::Relaxed);
        self.attributes.change();
    }
}

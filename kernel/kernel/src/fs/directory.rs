//! Directories: stored ones, and live ones, whose entries the kernel makes.
//!
//! # Protocol
//! The lock of a directory's entries guards them, and the flag that the directory is removed. A
//! check and the change that relies on it are made without releasing the lock, so a lookup finds a
//! name either before or after a change, and a removed directory gets no names. A removal locks the
//! parent, then the directory to be removed. A rename locks both parents, an ancestor first,
//! otherwise in the order of their addresses; then the directory that it replaces, which is below.
//! Only one rename runs at a time, so that ancestors remain ancestors. The lock of a directory's
//! `parent` comes last.

use super::{Inode, Kind, renamed, type_bits};
use crate::errno::Errno;
use crate::heap;
use crate::single::Single;
use crate::system::Lock;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::S_IFDIR;

/// A name in a directory, or the text of a symbolic link.
pub type Name = Vec<u8>;

/// `.` and `..` are before all other entries.
const DOTS: u64 = 2;

/// The entries of a directory listed so far. Additions and removals meanwhile do not affect the
/// listing of other entries.
#[derive(Clone, Default)]
pub struct Listed {
    /// The number of entries, `.` and `..` included; of a live directory, the position after them.
    pub count: u64,
    /// The last entry after `.` and `..`.
    last: Option<Name>,
}

impl Listed {
    /// Counts the entries before a position as listed.
    pub fn before(&mut self, position: u64, directory: &Directory, own: &Arc<Inode>) {
        if self.count == position {
            return;
        }
        *self = Listed::default();
        match &directory.0 {
            Content::Live(_) => self.count = position,
            Content::Stored { .. } => {
                while self.count < position && directory.next(own, self).is_some() {}
            }
        }
    }
}

/// A directory whose entries the kernel makes when a path leads there.
pub trait Live: Send + Sync {
    /// The directory that contains this one.
    fn parent(&self) -> Option<Arc<Inode>>;

    /// Its name in that directory.
    fn name(&self) -> Name;

    /// The inode of a name. `own` is the directory's.
    fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno>;

    /// The first name at a position from `from` on, and its position.
    fn next(&self, from: u64) -> Option<(u64, Name)>;
}

/// A directory.
pub struct Directory(Content);

enum Content {
    Stored {
        /// The directory that contains this one. A rename changes it.
        parent: Lock<Weak<Inode>>,
        entries: Lock<Entries>,
    },
    Live(Box<dyn Live>),
}

struct Entries {
    named: BTreeMap<Name, Arc<Inode>>,
    /// True if the directory is removed, so it gets no names.
    is_removed: bool,
}

/// A name in a directory, for a rename.
pub struct Spot<'a> {
    /// The directory.
    pub directory: &'a Arc<Inode>,
    /// The name.
    pub name: &'a [u8],
}

impl Directory {
    /// An empty, stored directory.
    pub fn new(parent: Weak<Inode>) -> Self {
        Directory(Content::Stored {
            parent: Lock::new(parent),
            entries: Lock::new(Entries {
                named: BTreeMap::new(),
                is_removed: false,
            }),
        })
    }

    /// A directory whose entries the kernel makes.
    pub fn live(live: impl Live + 'static) -> Self {
        Directory(Content::Live(Box::new(live)))
    }

    /// The entries, which programs may change.
    ///
    /// # Errors
    /// If the kernel makes them.
    fn stored(&self) -> Result<&Lock<Entries>, Errno> {
        match &self.0 {
            Content::Stored { entries, .. } => Ok(entries),
            Content::Live(_) => Err(Errno::PERM),
        }
    }

    /// Returns true if programs may change the entries.
    pub fn is_stored(&self) -> bool {
        self.stored().is_ok()
    }

    /// The directory that contains this one; that of a removed one may no longer exist.
    pub fn parent(&self) -> Option<Arc<Inode>> {
        match &self.0 {
            Content::Stored { parent, .. } => parent.lock().upgrade(),
            Content::Live(live) => live.parent(),
        }
    }

    /// The inode of a name. `own` is the directory's.
    pub fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        match &self.0 {
            Content::Stored { entries, .. } => {
                let entries = entries.lock();
                entries.named.get(name).cloned().ok_or(Errno::NOENT)
            }
            Content::Live(_) if heap::is_short() => Err(Errno::NOMEM),
            Content::Live(live) => live.get(own, name),
        }
    }

    /// Gives a new name to the inode that `make` makes.
    pub fn add(
        &self,
        name: &[u8],
        make: impl FnOnce() -> Result<Arc<Inode>, Errno>,
    ) -> Result<Arc<Inode>, Errno> {
        let Ok(entries) = self.stored() else {
            return Err(Errno::NOENT);
        };
        let mut entries = entries.lock();
        if entries.named.contains_key(name) {
            return Err(Errno::EXIST);
        }
        entries.refuse_new()?;
        let inode = make()?;
        inode.attributes.links.fetch_add(1, Ordering::Relaxed);
        entries.named.insert(name.to_vec(), inode.clone());
        Ok(inode)
    }

    /// Gives `inode` a name, replacing the inode that had it. Called before programs run.
    pub fn put(&self, name: &[u8], inode: Arc<Inode>) -> Result<(), Errno> {
        inode.attributes.links.fetch_add(1, Ordering::Relaxed);
        let before = self.stored()?.lock().named.insert(name.to_vec(), inode);
        drop(before);
        Ok(())
    }

    /// Removes a name, if `may` allows it for the named inode. A directory must be empty.
    pub fn remove(
        &self,
        own: &Arc<Inode>,
        name: &[u8],
        may: impl FnOnce(&Inode) -> Result<(), Errno>,
    ) -> Result<Arc<Inode>, Errno> {
        let Ok(entries) = self.stored() else {
            may(&*self.get(own, name)?)?;
            return Err(Errno::PERM);
        };
        let mut entries = entries.lock();
        let inode = entries.named.get(name).ok_or(Errno::NOENT)?;
        may(inode)?;
        inode.close()?;
        let removed = entries.named.remove(name).ok_or(Errno::NOENT)?;
        removed.lose_name();
        Ok(removed)
    }

    /// The number of directories in it.
    pub fn directories(&self) -> u32 {
        let Ok(entries) = self.stored() else {
            return 0;
        };
        let entries = entries.lock();
        let is_directory = |inode: &&Arc<Inode>| type_bits(inode) == S_IFDIR;
        entries.named.values().filter(is_directory).count() as u32
    }

    /// The name of a directory that is in this one.
    pub fn name_of(&self, inode: &Arc<Inode>) -> Option<Name> {
        if let Kind::Directory(Directory(Content::Live(live))) = &inode.kind {
            return Some(live.name());
        }
        let entries = self.stored().ok()?.lock();
        let found = entries.named.iter().find(|(_, it)| Arc::ptr_eq(it, inode));
        found.map(|(name, _)| name.clone())
    }

    /// The entry after the listed ones, which then counts as listed. `own` is the directory's
    /// inode.
    pub fn next(&self, own: &Arc<Inode>, listed: &mut Listed) -> Option<(Name, Arc<Inode>)> {
        let next = match (listed.count, &self.0) {
            (0, _) => (b".".to_vec(), own.clone()),
            (1, _) => (b"..".to_vec(), self.parent().unwrap_or(own.clone())),
            (_, Content::Stored { .. }) => {
                let next = self.after(listed.last.as_deref())?;
                listed.last = Some(next.0.clone());
                next
            }
            (_, Content::Live(live)) => loop {
                let (at, name) = live.next(listed.count - DOTS)?;
                listed.count = at.saturating_add(DOTS);
                // An entry that was removed meanwhile is left out.
                if let Ok(inode) = self.get(own, &name) {
                    break (name, inode);
                }
                listed.count += 1;
            },
        };
        listed.count += 1;
        Some(next)
    }

    /// The entry of a stored directory that follows `name`, in their order; without a name, the
    /// first.
    pub fn after(&self, name: Option<&[u8]>) -> Option<(Name, Arc<Inode>)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let from = name.map_or(Unbounded, Excluded);
        let entries = self.stored().ok()?.lock();
        let next = entries.named.range::<[u8], _>((from, Unbounded)).next();
        next.map(|(name, inode)| (name.clone(), inode.clone()))
    }
}

impl Entries {
    /// Fails if the inode may not get another name.
    fn refuse_new(&self) -> Result<(), Errno> {
        match heap::is_short() {
            _ if self.is_removed => Err(Errno::NOENT),
            true => Err(Errno::NOSPC),
            false => Ok(()),
        }
    }
}

impl Inode {
    /// Removes one from the inode's number of names.
    fn lose_name(&self) {
        self.attributes.links.fetch_sub(1, Ordering::Relaxed);
        self.attributes.change();
    }

    /// Marks the directory, whose name is being removed, as removed. It must be empty, and must not
    /// be live.
    fn close(&self) -> Result<(), Errno> {
        let Kind::Directory(directory) = &self.kind else {
            return Ok(());
        };
        let mut entries = directory.stored().map_err(|_| Errno::BUSY)?.lock();
        if !entries.named.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        entries.is_removed = true;
        Ok(())
    }

    /// Returns true if this is `above`, or a directory somewhere in it.
    fn is_within(self: &Arc<Self>, above: &Arc<Inode>) -> bool {
        let mut here = self.clone();
        while !Arc::ptr_eq(&here, above) {
            match here.directory().ok().and_then(Directory::parent) {
                Some(parent) if !Arc::ptr_eq(&parent, &here) => here = parent,
                _ => return false,
            }
        }
        true
    }
}

/// Held while a name is moved from one directory to another.
pub static RENAMES: Single<Lock<()>> = Single::new();

/// The options of a rename.
#[derive(Clone, Copy, Debug)]
pub struct Rename {
    /// True if the new name may be another inode's.
    pub replaces: bool,
    /// True if the inode must be a directory.
    pub of_directory: bool,
}

/// Gives the inode at `from` the name `to` instead of its own. The call excludes other renames;
/// lookups of the new name find the old inode or the renamed one. Returns the replaced inode, to be
/// dropped where nothing is locked.
pub fn rename(from: &Spot, to: &Spot, how: Rename) -> Result<Option<Arc<Inode>>, Errno> {
    let [old, new] = [from, to].map(|spot| spot.directory.directory()?.stored());
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(_), Err(_)) => return Err(Errno::PERM),
        _ => return Err(Errno::XDEV),
    };
    if ptr::eq(old, new) {
        let moved = move_name(&mut old.lock(), None, from, to, how);
        return moved.inspect(|replaced| tell(from, to, replaced.as_ref()));
    }
    let is_old_first = match () {
        () if to.directory.is_within(from.directory) => true,
        () if from.directory.is_within(to.directory) => false,
        () => ptr::from_ref(old).addr() < ptr::from_ref(new).addr(),
    };
    let (mut old, mut new) = if is_old_first {
        let old = old.lock();
        (old, new.lock())
    } else {
        let new = new.lock();
        (old.lock(), new)
    };
    let moved = move_name(&mut old, Some(&mut new), from, to, how);
    drop((old, new));
    moved.inspect(|replaced| tell(from, to, replaced.as_ref()))
}

/// Tells watches of a rename.
fn tell(from: &Spot, to: &Spot, replaced: Option<&Arc<Inode>>) {
    let moved = to
        .directory
        .directory()
        .and_then(|it| it.get(to.directory, to.name));
    // It may be gone again.
    if let Ok(inode) = moved {
        let spots = [from, to].map(|spot| (&**spot.directory, spot.name));
        renamed(&inode, spots, replaced.map(|it| &**it));
    }
}

/// Moves a name, with the entries locked; `new` is `None` if both directories are the same.
fn move_name(
    old: &mut Entries,
    new: Option<&mut Entries>,
    from: &Spot,
    to: &Spot,
    how: Rename,
) -> Result<Option<Arc<Inode>>, Errno> {
    let source = old.named.get(from.name).ok_or(Errno::NOENT)?.clone();
    let target = new.as_deref().unwrap_or(old).named.get(to.name).cloned();
    let is_directory = matches!(source.kind, Kind::Directory(_));
    match &target {
        Some(_) if !how.replaces => return Err(Errno::EXIST),
        Some(target) => {
            from.directory.refuse_removing(&source)?;
            to.directory.refuse_removing(target)?;
        }
        None => {
            from.directory.refuse_removing(&source)?;
            to.directory.refuse_adding()?;
        }
    }
    match &target {
        _ if how.of_directory && !is_directory => return Err(Errno::NOTDIR),
        _ if is_directory && to.directory.is_within(&source) => return Err(Errno::INVAL),
        Some(target) if from.directory.is_within(target) => return Err(Errno::NOTEMPTY),
        Some(target) if Arc::ptr_eq(&source, target) => return Ok(None),
        Some(target) => may_replace(&source, target)?,
        None => new.as_deref().unwrap_or(old).refuse_new()?,
    }
    if let Kind::Directory(Directory(content)) = &source.kind {
        let Content::Stored { parent, .. } = content else {
            return Err(Errno::BUSY);
        };
        if let Some(target) = &target {
            target.close()?;
        }
        *parent.lock() = Arc::downgrade(to.directory);
    }
    let moved = old.named.remove(from.name).ok_or(Errno::NOENT)?;
    let entries = new.unwrap_or(old);
    entries.named.insert(to.name.to_vec(), moved);
    source.attributes.change();
    Ok(target.inspect(|it| it.lose_name()))
}

/// Fails unless both are directories, or neither is.
fn may_replace(source: &Inode, target: &Inode) -> Result<(), Errno> {
    match (&source.kind, &target.kind) {
        (Kind::Directory(_), Kind::Directory(_)) => Ok(()),
        (Kind::Directory(_), _) => Err(Errno::NOTDIR),
        (_, Kind::Directory(_)) => Err(Errno::ISDIR),
        _ => Ok(()),
    }
}

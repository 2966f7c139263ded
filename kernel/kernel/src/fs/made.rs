//! The kernel's reports as files: made when a path leads there, or when they are read.

use super::{Directory, Inode, Kind, Name};
use crate::abi::Errno;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use linux_raw_sys::general::{S_IFDIR, S_IFLNK, S_IFREG};

/// An inode that is made each time a path leads there.
pub struct Made {
    /// Its kind, as the upper bits of a mode say it.
    pub type_bits: u32,
    make: Box<dyn Fn() -> Result<Arc<Inode>, Errno> + Send + Sync>,
    /// Of a directory with many entries: finds one of them, without making the others.
    find: Option<Find>,
}

/// Finds the entry with a name.
type Find = Box<dyn Fn(&[u8]) -> Option<Arc<Inode>> + Send + Sync>;

/// A file whose content is made when it is read.
pub trait Report: Send + Sync {
    /// Fills `to` with the bytes from `offset` on; returns how many there were.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno>;
}

/// The entries of a directory.
pub type Entries = Vec<(Name, Arc<Inode>)>;

/// A text, as it was when the file was opened.
struct Text(Vec<u8>);

impl Report for Text {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(start..).unwrap_or(&[]);
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl Inode {
    /// The inode that a path finds here.
    pub fn found(self: Arc<Self>) -> Result<Arc<Inode>, Errno> {
        match &self.kind {
            Kind::Made(made) => (made.make)(),
            _ => Ok(self),
        }
    }

    /// How to find an entry of the directory that this is, if it need not be made for that.
    pub fn finder(&self) -> Option<&Find> {
        match &self.kind {
            Kind::Made(made) => made.find.as_ref(),
            _ => None,
        }
    }
}

fn made(
    type_bits: u32,
    make: impl Fn() -> Result<Arc<Inode>, Errno> + Send + Sync + 'static,
) -> Arc<Inode> {
    let made = Made {
        type_bits,
        make: Box::new(make),
        find: None,
    };
    Inode::new(Kind::Made(made), 0)
}

/// A file with the text that `write` writes when it is opened.
pub fn text<T: Into<Vec<u8>>>(
    write: impl Fn() -> Result<T, Errno> + Send + Sync + 'static,
) -> Arc<Inode> {
    made(S_IFREG, move || {
        let text: Box<dyn Report> = Box::new(Text(write()?.into()));
        Ok(Inode::new(Kind::Report(text), 0o444))
    })
}

/// A file whose bytes are made as they are read.
pub fn report<R: Report + 'static>(
    open: impl Fn() -> Result<R, Errno> + Send + Sync + 'static,
) -> Arc<Inode> {
    made(S_IFREG, move || {
        Ok(Inode::new(Kind::Report(Box::new(open()?)), 0o400))
    })
}

/// A symbolic link to the path that `target` returns.
pub fn link(target: impl Fn() -> Result<Name, Errno> + Send + Sync + 'static) -> Arc<Inode> {
    made(S_IFLNK, move || {
        Ok(Inode::new(Kind::Link(target()?), 0o777))
    })
}

/// A directory whose entries `list` lists each time a path leads there. `list` gets the directory
/// once, as the parent of its entries, and returns a function that lists them.
pub fn listed<L>(parent: Weak<Inode>, list: impl FnOnce(&Weak<Inode>) -> L) -> Arc<Inode>
where
    L: Fn() -> Result<Entries, Errno> + Send + Sync + 'static,
{
    Arc::new_cyclic(|itself| directory(parent, list(itself), None))
}

/// The same of a directory with many entries: `functions` returns also one that finds the entry with a name.
pub fn searched<L, F>(
    parent: Weak<Inode>,
    functions: impl FnOnce(&Weak<Inode>) -> (L, F),
) -> Arc<Inode>
where
    L: Fn() -> Result<Entries, Errno> + Send + Sync + 'static,
    F: Fn(&[u8]) -> Option<Arc<Inode>> + Send + Sync + 'static,
{
    Arc::new_cyclic(|itself| {
        let (list, find) = functions(itself);
        directory(parent, list, Some(Box::new(find)))
    })
}

fn directory(
    parent: Weak<Inode>,
    list: impl Fn() -> Result<Entries, Errno> + Send + Sync + 'static,
    find: Option<Find>,
) -> Inode {
    let make = Box::new(move || {
        let directory = Directory::fixed(parent.clone(), list()?);
        Ok(Inode::new(Kind::Directory(directory), 0o555))
    });
    let type_bits = S_IFDIR;
    let made = Made {
        type_bits,
        make,
        find,
    };
    Inode::unshared(Kind::Made(made), 0)
}

/// A directory whose entries never change; `list` gets it, as the parent of its entries.
pub fn fixed(parent: Weak<Inode>, list: impl FnOnce(&Weak<Inode>) -> Entries) -> Arc<Inode> {
    Arc::new_cyclic(|itself| {
        let directory = Directory::fixed(parent, list(itself));
        Inode::unshared(Kind::Directory(directory), 0o555)
    })
}

/// Entries with these names.
pub fn entries<const COUNT: usize>(named: [(&str, Arc<Inode>); COUNT]) -> Entries {
    named
        .map(|(name, inode)| (name.as_bytes().to_vec(), inode))
        .to_vec()
}

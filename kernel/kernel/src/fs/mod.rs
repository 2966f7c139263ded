//! Files in memory. A file's content is an object of the VM: `read` copies the same pages that
//! `mmap` maps.

mod archive;
mod attributes;
mod descriptors;
mod device;
mod directory;
mod event;
mod fifo;
mod flock;
mod made;
mod names;
mod open;
mod path;
mod proc;
mod records;
mod stat;
mod terminal;

pub use archive::unpack;
pub use attributes::{Attributes, now};
pub use descriptors::{Descriptors, MOST};
pub use device::Device;
pub use directory::{Directory, Listed, Name};
pub use event::Event;
pub use fifo::Fifo;
pub use flock::Flock;
pub use names::{name_of, path_of};
pub use open::{Open, OpenFile, pipe};
pub use path::{Path, find, find_parent};
pub use proc::{amounts, mount};
pub use records::{Owner, Record, Records};
pub use stat::{stat, type_bits};
pub use terminal::{Settings, Terminal, WindowSize};

use crate::abi::Errno;
use crate::system::{ObjectRef, system};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use made::{Made, Report};
use vm::object::Object;

/// The numbers of the device that all files are on.
pub const DEVICE: (u32, u32) = (0, 1);

/// Something that has a name.
pub struct Inode {
    /// Its number.
    pub number: u64,
    /// The permission bits.
    pub mode: AtomicU32,
    /// Its other attributes.
    pub attributes: Attributes,
    /// The locks that programs have on it.
    pub flock: Flock,
    /// Their locks on parts of it.
    pub records: Records,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of an inode.
pub enum Kind {
    /// A directory.
    Directory(Directory),
    /// A file.
    File(ObjectRef),
    /// A pipe with a name.
    Fifo(Fifo),
    /// A symbolic link, and where it leads.
    Link(Name),
    /// A device.
    Device(Device),
    /// A report of the kernel's, as a file.
    Report(Box<dyn Report>),
    /// A process's open file: opening this opens its inode, or gives that file again if it has none.
    Opened(Arc<OpenFile>),
    /// Another inode each time.
    Made(Made),
}

impl Inode {
    /// A new inode.
    pub fn new(kind: Kind, mode: u32) -> Arc<Self> {
        Arc::new(Self::unshared(kind, mode))
    }

    fn unshared(kind: Kind, mode: u32) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        Inode {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            mode: AtomicU32::new(mode & 0o7777),
            attributes: Attributes::new(),
            flock: Flock::new(),
            records: Records::new(),
            kind,
        }
    }

    /// A root directory: its own parent.
    pub fn root() -> Arc<Self> {
        Arc::new_cyclic(|root: &Weak<Inode>| {
            Self::unshared(Kind::Directory(Directory::new(root.clone())), 0o755)
        })
    }

    /// A new, empty file.
    pub fn file(mode: u32) -> Result<Arc<Self>, Errno> {
        let object = Object::anonymous(&system().vm, None, 0)?;
        Ok(Self::new(Kind::File(object), mode))
    }

    /// The directory that this is.
    pub fn directory(&self) -> Result<&Directory, Errno> {
        match &self.kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The content of the file that this is.
    pub fn object(&self) -> Option<&ObjectRef> {
        match &self.kind {
            Kind::File(object) => Some(object),
            _ => None,
        }
    }
}

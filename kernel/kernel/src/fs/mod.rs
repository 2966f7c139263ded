//! Files in memory. A file's content is an object of the VM: `read` copies the same pages that
//! `mmap` maps.

mod access;
mod archive;
mod attributes;
mod awaited;
mod descriptors;
mod device;
mod directory;
mod epoll;
mod event;
mod executable;
mod fifo;
mod flock;
pub mod live;
mod names;
mod open;
mod path;
mod records;
mod signals;
mod socket;
mod special;
mod stat;
mod ticker;
mod transfer;
mod watches;

pub use access::caller;
pub use archive::unpack;
pub use attributes::{Attributes, now};
pub use awaited::Awaited;
pub use descriptors::{Descriptors, MOST};
pub use device::{Device, TTY, Tty};
pub use directory::{Directory, Listed, Live, Name, RENAMES, Rename, Spot, rename};
pub use epoll::{Epoll, Interest};
pub use event::Event;
pub use executable::{Executable, Writer};
pub use fifo::Fifo;
pub use flock::Flock;
pub use names::{Names, name_of, path_of};
pub use open::{Open, OpenFile, pipe};
pub use path::{Last, Path, Place, find};
pub use records::{Owner, Record, Records, WAITS, Waits};
pub use signals::{ARRIVALS, Arrivals, Signals, Waiting};
pub use socket::{
    ABSTRACT, Address, Control, DATAGRAMS, DROPPED, Domain, PASS_CREDENTIALS, Received, STREAMS,
    Socket, option_place,
};
pub use special::Special;
pub use stat::{stat, type_bits};
pub use ticker::Ticker;
pub use transfer::{
    CHUNK, MOST_BYTES, Reading, Receiving, Source, Target, receive_from, refuse_area, send_to,
    unready,
};

pub use watches::{Notices, WATCHES, Watches, renamed};

use crate::errno::Errno;
use crate::single::Single;
use crate::system::{Lock, ObjectRef, system};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use executable::Uses;
use live::Report;
use vm::object::Object;

/// The root directory.
pub static ROOT: Single<Arc<Inode>> = Single::new();

/// The numbers of the device that all files are on.
pub const DEVICE: (u32, u32) = (0, 1);

/// Something that has a name.
pub struct Inode {
    /// The inode's number.
    pub number: u64,
    /// The permission bits.
    pub mode: AtomicU32,
    /// Its other attributes.
    pub attributes: Attributes,
    /// The locks of programs on the whole inode.
    pub flock: Flock,
    /// The locks of programs on parts of it.
    pub records: Records,
    /// Held while calls change a file's bytes or size, so that its end does not move meanwhile.
    pub writing: Lock<()>,
    /// The counts of programs that run from it, and of writers.
    uses: Uses,
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
    /// A symbolic link, with its text.
    Link(Name),
    /// A device.
    Device(Device),
    /// A report of the kernel, as a file.
    Report(Box<dyn Report>),
    /// A counter.
    Event(Event),
    /// A timer.
    Ticker(Ticker),
    /// Events that are read.
    Special(Box<dyn Special>),
    /// A set of interests in open files.
    Epoll(Epoll),
    /// A socket.
    Socket(Arc<Socket>),
    /// The name of a socket in a directory.
    Bound(Weak<Socket>),
    /// A link that leads to an inode, independent of names.
    Jump(Jump),
}

/// A link of `/proc` to an inode.
pub struct Jump {
    /// The inode to which it leads.
    pub to: Arc<Inode>,
    /// Its text; `None` for the present name of the inode.
    text: Option<Name>,
}

impl Jump {
    /// The inode of such a link.
    pub fn inode(to: Arc<Inode>, text: Option<Name>) -> Arc<Inode> {
        Inode::new(Kind::Jump(Jump { to, text }), 0o700)
    }

    /// The link's text.
    pub fn text(&self) -> Name {
        self.text.clone().unwrap_or_else(|| name_of(&self.to))
    }
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
            writing: Lock::new(()),
            uses: Uses::default(),
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
        let object = Object::anonymous(&system().vm, 0)?;
        Ok(Self::new(Kind::File(object), mode))
    }

    /// The directory; an error if this is none.
    pub fn directory(&self) -> Result<&Directory, Errno> {
        match &self.kind {
            Kind::Directory(directory) => Ok(directory),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The content, if this is a file.
    pub fn object(&self) -> Option<&ObjectRef> {
        match &self.kind {
            Kind::File(object) => Some(object),
            _ => None,
        }
    }
}

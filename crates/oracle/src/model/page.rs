//! The model's knowledge of one page of one process.

use crate::address::PAGE;
use crate::outcome::Core;
use crate::step::{Advice, Prot};
use std::rc::Rc;

/// A mapped page.
#[derive(Clone, PartialEq)]
pub struct Page {
    /// Equal for pages that certainly belong to one mapping in the kernel as well. The kernel may
    /// or may not merge neighbours that only have equal attributes.
    pub mapping: u64,
    /// The attributes, which the kernel keeps for each mapping.
    pub attributes: Attributes,
    /// The index of the page in the object; 0 without an object.
    pub offset: u64,
    /// A private page's own content, once written.
    pub own: Option<Own>,
    /// What is known of its presence in memory; for shared anonymous memory the object records
    /// that.
    pub core: Core,
}

/// The attributes that pages of one mapping share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub prot: Prot,
    pub shared: bool,
    /// The file or shared memory behind it.
    pub object: Option<usize>,
    /// True if the memory may become writable.
    pub may_write: bool,
    pub lock: Lock,
    pub grows_down: bool,
    pub no_reserve: bool,
    pub dont_fork: bool,
    pub wipe_on_fork: bool,
    /// `hugepage`, `nohugepage` or `normal`.
    pub size: Advice,
    /// `random`, `sequential` or `normal`.
    pub order: Advice,
}

/// How pages are locked in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Not locked.
    No,
    /// Locked, and brought in.
    Yes,
    /// Locked once they come in.
    OnFault,
}

/// The possible contents of a private page: one, or more after `MADV_FREE`.
#[derive(Clone, PartialEq)]
pub struct Own(pub Vec<Rc<[u8]>>);

impl Own {
    /// A content that certainly is these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Own(vec![bytes.into()])
    }

    /// Returns true if both share one content, which no write has copied yet.
    pub fn shares(&self, other: &Own) -> bool {
        Rc::ptr_eq(&self.0[0], &other.0[0])
    }

    /// Adds zeroes to the possible contents.
    pub fn or_zero(&mut self) {
        self.0.push(zero().into());
    }

    /// Writes to each of the possible contents.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        for content in &mut self.0 {
            let mut changed = content.to_vec();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            *content = changed.into();
        }
        self.0.dedup();
    }
}

/// A page of zeroes.
pub fn zero() -> Vec<u8> {
    vec![0; PAGE as usize]
}

impl Page {
    /// A page that no access has touched.
    pub fn new(mapping: u64, attributes: Attributes, offset: u64) -> Self {
        Page {
            mapping,
            attributes,
            offset,
            own: None,
            core: Core::Out,
        }
    }

    /// Drops the process's copy.
    pub fn forget(&mut self) {
        self.own = None;
        self.core = Core::Out;
    }

    /// Returns true if the hardware allows reading; on x86, writable pages are always readable.
    pub fn reads(&self) -> bool {
        let Prot { read, write, .. } = self.attributes.prot;
        read || write
    }

    /// Returns true if the page may only be executed. Some processors then allow reads, some do
    /// not.
    pub fn only_executes(&self) -> bool {
        self.attributes.prot.execute && !self.reads()
    }

    /// Returns true if the page is locked in any way.
    pub fn is_locked(&self) -> bool {
        self.attributes.lock != Lock::No
    }
}

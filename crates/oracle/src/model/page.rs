//! What the model knows of one page of one process.

use crate::address::PAGE;
use crate::outcome::Core;
use crate::step::{Advice, Prot};
use std::rc::Rc;

/// A mapped page.
#[derive(Clone, PartialEq)]
pub struct Page {
    /// The same for pages that surely are one mapping to the kernel, too. Whether neighbours
    /// that only look alike are one is the kernel's affair.
    pub mapping: u64,
    /// What the kernel keeps for a mapping as a whole.
    pub attributes: Attributes,
    /// Which page of the object it is; 0 without an object.
    pub offset: u64,
    /// A private page's own content, once it was written.
    pub own: Option<Own>,
    /// Whether the process has it in memory; of shared anonymous memory the object knows.
    pub core: Core,
}

/// What pages of one mapping have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub prot: Prot,
    pub shared: bool,
    /// The file or shared memory behind it.
    pub object: Option<usize>,
    /// Whether it may become writable.
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

/// Whether pages are locked in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// They are not.
    No,
    /// They are, and have been brought in.
    Yes,
    /// They are, once they come in.
    OnFault,
}

/// What a private page may contain: one content, or more after `MADV_FREE`.
#[derive(Clone, PartialEq)]
pub struct Own(pub Vec<Rc<[u8]>>);

impl Own {
    /// Surely this.
    pub fn new(bytes: Vec<u8>) -> Self {
        Own(vec![bytes.into()])
    }

    /// Whether both are the very same content, copied by no write yet.
    pub fn shares(&self, other: &Own) -> bool {
        Rc::ptr_eq(&self.0[0], &other.0[0])
    }

    /// From now on it may be zero, too.
    pub fn or_zero(&mut self) {
        self.0.push(zero().into());
    }

    /// Writes, whatever is there.
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
    /// A page that nobody has touched.
    pub fn new(mapping: u64, attributes: Attributes, offset: u64) -> Self {
        Page {
            mapping,
            attributes,
            offset,
            own: None,
            core: Core::Out,
        }
    }

    /// The process loses what it has there.
    pub fn forget(&mut self) {
        self.own = None;
        self.core = Core::Out;
    }

    /// Whether the hardware lets it be read; x86 can write nothing that it can not read.
    pub fn reads(&self) -> bool {
        let Prot { read, write, .. } = self.attributes.prot;
        read || write
    }

    /// Whether it may be executed only: some processors then allow reads, some do not.
    pub fn only_executes(&self) -> bool {
        self.attributes.prot.execute && !self.reads()
    }

    /// Whether it is locked in any way.
    pub fn is_locked(&self) -> bool {
        self.attributes.lock != Lock::No
    }
}

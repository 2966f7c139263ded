//! Nodes of callbacks, embedded in the objects that the callbacks are for, and lists of them.

use core::ptr::null_mut;
use machine::{Machine, SharedCell};

/// A node in a CPU's list of callbacks, embedded in the object it is for (like `ck_epoch_entry`).
/// 16 bytes.
pub struct Deferred<M: Machine> {
    /// Owned by the owner of the object, then by the owner of the list.
    pub(crate) link: M::Cell<Link<M>>,
}

/// The contents of a node in a list.
pub(crate) struct Link<M: Machine> {
    next: *mut Deferred<M>,
    pub(crate) run: unsafe fn(*mut Deferred<M>),
}

impl<M: Machine> Clone for Link<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Machine> Copy for Link<M> {}

// SAFETY: a caller that gives a node to a list promises that the object may move to any CPU.
unsafe impl<M: Machine> Send for Link<M> {}

impl<M: Machine> Deferred<M> {
    /// A node in no list.
    pub fn new() -> Self {
        Deferred {
            link: M::Cell::new(Link {
                next: null_mut(),
                run: |_| (),
            }),
        }
    }
}

impl<M: Machine> Default for Deferred<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// A list of nodes in order.
pub(crate) struct List<M: Machine> {
    head: *mut Deferred<M>,
    tail: *mut Deferred<M>,
}

// SAFETY: a caller that gives a node to a list promises that the object may move to any CPU.
unsafe impl<M: Machine> Send for List<M> {}

impl<M: Machine> List<M> {
    pub(crate) const EMPTY: Self = List {
        head: null_mut(),
        tail: null_mut(),
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    pub(crate) fn take(&mut self) -> Self {
        core::mem::replace(self, Self::EMPTY)
    }

    /// Appends a node for the callback `run`.
    ///
    /// # Safety
    /// The node is in no list and valid, it and its object may move to any CPU, and the caller
    /// hands it over.
    pub(crate) unsafe fn push(&mut self, node: *mut Deferred<M>, run: unsafe fn(*mut Deferred<M>)) {
        let next = null_mut();
        // SAFETY: the caller hands over a valid node, so this list owns it.
        unsafe { *(*node).link.write() = Link { next, run } };
        self.append(&mut List {
            head: node,
            tail: node,
        });
    }

    /// Moves all nodes of `other` to the end of this list.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let other = other.take();
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            // SAFETY: a node in a list is valid and belongs to the list's owner alone.
            unsafe { (*(*self.tail).link.write()).next = other.head };
            self.tail = other.tail;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(*mut Deferred<M>, Link<M>)> {
        let node = self.head;
        if node.is_null() {
            return None;
        }
        // SAFETY: a node in a list is valid and belongs to the list's owner alone.
        let link = unsafe { *(*node).link.read() };
        self.head = link.next;
        Some((node, link))
    }
}

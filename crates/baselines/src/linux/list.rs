//! Doubly linked lists through what is listed, as Linux's `list_head`: who enters or leaves writes
//! his neighbours' lines.

use core::iter;
use core::ptr::{from_ref, null};
use machine::{Machine, SharedCell};

/// A list. All of it is guarded by one lock of its user's.
pub(super) struct List<M: Machine>(M::Cell<Ends<M>>);

/// A place in a list: the first field of what is listed. 16 bytes.
pub(super) struct Node<M: Machine>(M::Cell<Links<M>>);

struct Ends<M: Machine> {
    first: *const Node<M>,
    last: *const Node<M>,
}

struct Links<M: Machine> {
    next: *const Node<M>,
    previous: *const Node<M>,
}

// SAFETY: followed under the list's lock only, and listed nodes live.
unsafe impl<M: Machine> Send for Ends<M> {}
// SAFETY: as above.
unsafe impl<M: Machine> Send for Links<M> {}

impl<M: Machine> Node<M> {
    pub(super) fn new() -> Self {
        Node(M::Cell::new(Links {
            next: null(),
            previous: null(),
        }))
    }
}

impl<M: Machine> List<M> {
    pub(super) fn new() -> Self {
        List(M::Cell::new(Ends {
            first: null(),
            last: null(),
        }))
    }

    /// Whether there is nothing in the list.
    ///
    /// # Safety
    /// The list's lock is held.
    pub(super) unsafe fn is_empty(&self) -> bool {
        // SAFETY: by contract.
        unsafe { (*self.0.read()).first.is_null() }
    }

    /// Lists `node` as the last.
    ///
    /// # Safety
    /// The list's lock is held, and `node` is in no list, and stays in place while it is in this one.
    pub(super) unsafe fn push(&self, node: &Node<M>) {
        // SAFETY: by contract; listed nodes live.
        unsafe {
            let ends = self.0.write();
            let last = (*ends).last;
            *node.0.write() = Links {
                next: null(),
                previous: last,
            };
            match last.as_ref() {
                Some(last) => (*last.0.write()).next = from_ref(node),
                None => (*ends).first = from_ref(node),
            }
            (*ends).last = from_ref(node);
        }
    }

    /// Takes `node` from the list.
    ///
    /// # Safety
    /// The list's lock is held, and `node` is in the list.
    pub(super) unsafe fn remove(&self, node: &Node<M>) {
        // SAFETY: by contract; listed nodes live.
        unsafe {
            let Links { next, previous } = node.0.read().read();
            match previous.as_ref() {
                Some(previous) => (*previous.0.write()).next = next,
                None => (*self.0.write()).first = next,
            }
            match next.as_ref() {
                Some(next) => (*next.0.write()).previous = previous,
                None => (*self.0.write()).last = previous,
            }
        }
    }

    /// What is listed, from the oldest on.
    ///
    /// # Safety
    /// The list's lock is held as long as the iterator lives.
    pub(super) unsafe fn iter(&self) -> impl Iterator<Item = *const Node<M>> {
        // SAFETY: by contract; listed nodes live.
        let first = unsafe { (*self.0.read()).first };
        let after = |node: &*const Node<M>| {
            // SAFETY: as above.
            let next = unsafe { (*(**node).0.read()).next };
            (!next.is_null()).then_some(next)
        };
        iter::successors((!first.is_null()).then_some(first), after)
    }
}

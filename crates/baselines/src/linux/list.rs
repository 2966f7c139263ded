//! Doubly linked lists through their elements (Linux's `list_head`): inserting or removing an
//! element writes its neighbours' cache lines. Elements are in boxes, which do not move.

use alloc::boxed::Box;
use core::iter;
use core::ops::Deref;
use core::ptr::{NonNull, from_ref, null};
use machine::{Machine, SharedCell};

/// A list. One lock, provided by the user, guards all of it.
pub(super) struct List<M: Machine>(M::Cell<Ends<M>>);

/// A node of a list: the first field of the listed structure. 16 bytes.
pub(super) struct Node<M: Machine>(M::Cell<Links<M>>);

struct Ends<M: Machine> {
    first: *const Node<M>,
    last: *const Node<M>,
}

struct Links<M: Machine> {
    next: *const Node<M>,
    previous: *const Node<M>,
}

// SAFETY: links are followed only under the list's lock, and listed nodes live.
unsafe impl<M: Machine> Send for Ends<M> {}
// SAFETY: links are followed only under the list's lock, and listed nodes live.
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

    /// Returns true if the list is empty.
    ///
    /// # Safety
    /// The list's lock is held.
    pub(super) unsafe fn is_empty(&self) -> bool {
        // SAFETY: the caller holds the list's lock.
        unsafe { (*self.0.read()).first.is_null() }
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// The list's lock is held, and `node` is in no list, and stays in place while it is in this
    /// one.
    pub(super) unsafe fn push(&self, node: &Node<M>) {
        // SAFETY: the caller holds the list's lock and answers for `node`; listed nodes live.
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

    /// Removes `node` from the list.
    ///
    /// # Safety
    /// The list's lock is held, and `node` is in the list.
    pub(super) unsafe fn remove(&self, node: &Node<M>) {
        // SAFETY: the caller holds the list's lock and answers for `node`; listed nodes live.
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

    /// The list's nodes, oldest first.
    ///
    /// # Safety
    /// The list's lock is held as long as the iterator lives.
    pub(super) unsafe fn iter(&self) -> impl Iterator<Item = *const Node<M>> {
        // SAFETY: the caller holds the list's lock; listed nodes live.
        let first = unsafe { (*self.0.read()).first };
        let after = |node: &*const Node<M>| {
            // SAFETY: the caller holds the list's lock as long as the iterator lives; listed nodes
            // live.
            let next = unsafe { (*(**node).0.read()).next };
            (!next.is_null()).then_some(next)
        };
        iter::successors((!first.is_null()).then_some(first), after)
    }
}

/// A value on the heap. It may be moved while references to the value exist, which a `Box` forbids.
pub(super) struct Pinned<T>(NonNull<T>);

// SAFETY: it owns the value.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: it only gives out shared references.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T> Pinned<T> {
    pub(super) fn new(value: T) -> Self {
        Pinned(NonNull::from(Box::leak(Box::new(value))))
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: the value comes from a box, and the drop has it exclusively.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

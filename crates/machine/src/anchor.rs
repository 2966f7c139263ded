//! Values that exist once per machine.

use alloc::boxed::Box;
use core::any::Any;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Holds one value of each requested type, created at first use.
///
/// A value that a kernel would put in a `static` (the table of turnstiles, for example) cannot be
/// one in code that is generic over the machine; instead a machine has an anchor
/// ([`crate::Tasks::anchor`]). The values form a list that only grows, and a look-up walks it, so
/// an anchor is for slow paths.
pub struct Anchor {
    head: AtomicPtr<Node>,
}

struct Node {
    value: Box<dyn Any + Send + Sync>,
    next: *mut Node,
}

impl Anchor {
    /// An empty anchor.
    pub const fn new() -> Self {
        Anchor {
            head: AtomicPtr::new(null_mut()),
        }
    }

    /// The anchored `T`, if there is one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        // Acquire: pairs with the release in `get_or_init`, so the node is seen initialised.
        find(self.head.load(Ordering::Acquire), null_mut())
    }

    /// The anchored `T`; if two CPUs create it at once, one of the two values is dropped.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        // Acquire: pairs with the release below, so a node is seen initialised.
        let mut head = self.head.load(Ordering::Acquire);
        if let Some(found) = find(head, null_mut()) {
            return found;
        }
        let node = Box::into_raw(Box::new(Node {
            value: Box::new(make()),
            next: head,
        }));
        loop {
            match self
                .head
                .compare_exchange(head, node, Ordering::AcqRel, Ordering::Acquire)
            {
                // SAFETY: the node is in the list, which keeps it until the anchor is dropped.
                Ok(_) => return unsafe { &*node }.value.downcast_ref().expect("just made"),
                Err(newer) => {
                    if let Some(found) = find(newer, head) {
                        // SAFETY: the node was never published.
                        drop(unsafe { Box::from_raw(node) });
                        return found;
                    }
                    head = newer;
                    // SAFETY: the node is not published yet, so only this call has it.
                    unsafe { (*node).next = newer };
                }
            }
        }
    }
}

/// The first `T` in the list from `node` up to `end`.
fn find<'a, T: 'static>(mut node: *mut Node, end: *mut Node) -> Option<&'a T> {
    while node != end {
        // SAFETY: published nodes do not change and are freed only with the anchor.
        let here = unsafe { &*node };
        if let Some(value) = here.value.downcast_ref() {
            return Some(value);
        }
        node = here.next;
    }
    None
}

impl Default for Anchor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        let mut node = *self.head.get_mut();
        while !node.is_null() {
            // SAFETY: `drop` has the anchor exclusively, so no reference to a node is left.
            let here = unsafe { Box::from_raw(node) };
            node = here.next;
        }
    }
}

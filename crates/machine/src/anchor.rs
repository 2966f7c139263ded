//! Values that exist once for a machine.

use alloc::boxed::Box;
use core::any::Any;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Holds one value of each type asked for, made at first use.
///
/// What a kernel would put in a `static` (the table of turnstiles, say) can not be
/// one in code generic over the machine; a machine has an anchor instead
/// ([`crate::Tasks::anchor`]). A list that only grows; a look-up walks it, so it is
/// for slow paths.
pub struct Anchor {
    head: AtomicPtr<Node>,
}

struct Node {
    value: Box<dyn Any + Send + Sync>,
    next: *mut Node,
}

impl Anchor {
    /// Holds nothing yet.
    pub const fn new() -> Self {
        Anchor {
            head: AtomicPtr::new(null_mut()),
        }
    }

    /// The anchored `T`, if there is one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        // Acquire: as below.
        find(self.head.load(Ordering::Acquire), null_mut())
    }

    /// The anchored `T`; `make` may be called in vain if two CPUs are first at once.
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
                // SAFETY: the node is now the list's and lives as long as it.
                Ok(_) => return unsafe { &*node }.value.downcast_ref().expect("just made"),
                Err(newer) => {
                    if let Some(found) = find(newer, head) {
                        // SAFETY: the node was never published.
                        drop(unsafe { Box::from_raw(node) });
                        return found;
                    }
                    head = newer;
                    // SAFETY: as above, it is still ours alone.
                    unsafe { (*node).next = newer };
                }
            }
        }
    }
}

/// The first `T` in the list from `node` up to `end`.
fn find<'a, T: 'static>(mut node: *mut Node, end: *mut Node) -> Option<&'a T> {
    while node != end {
        // SAFETY: published nodes are not changed, and freed with the anchor only.
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
            // SAFETY: nobody else has the anchor any more.
            let here = unsafe { Box::from_raw(node) };
            node = here.next;
        }
    }
}

//! Spin locks with a bug.

use machine::{Atomic, Atomics, Cpus, Ordering};
use sim::Sim;
use std::ptr::{self, NonNull, null_mut};
use sync::RawLock;

/// A flag that is checked and then set, as if no other CPU came in between.
pub struct LoadThenStore(<Sim as Atomics>::AtomicU8);

// SAFETY: none; two tasks may acquire it at the same time, and the check must find that.
unsafe impl RawLock<Sim> for LoadThenStore {
    type Held = ();
    const NAME: &'static str = "load-then-store";

    fn new() -> Self {
        LoadThenStore(Atomic::new(0))
    }

    fn lock(&self) {
        Sim::spin_until(|| self.try_lock().is_some());
    }

    fn try_lock(&self) -> Option<()> {
        let free = self.0.load(Ordering::Acquire) == 0;
        free.then(|| self.0.store(1, Ordering::Release))
    }

    unsafe fn unlock(&self, (): ()) {
        self.0.store(0, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// A place in the queue.
pub struct Node {
    next: <Sim as Atomics>::AtomicPtr,
    waiting: <Sim as Atomics>::AtomicU8,
}

/// MCS, but a holder without a successor empties the queue by a store: a waiter that
/// has entered it meanwhile is forgotten.
pub struct McsStore(<Sim as Atomics>::AtomicPtr);

// SAFETY: none; a waiter may be forgotten, and the check must find that.
unsafe impl RawLock<Sim> for McsStore {
    /// Nodes are never freed, so that the bug is one of queueing and not of memory.
    type Held = NonNull<Node>;
    const NAME: &'static str = "mcs-store";

    fn new() -> Self {
        McsStore(Atomic::new(null_mut()))
    }

    fn lock(&self) -> NonNull<Node> {
        let node: &Node = Box::leak(Box::new(Node {
            next: Atomic::new(null_mut()),
            waiting: Atomic::new(1),
        }));
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        let before = self.0.swap(this, Ordering::AcqRel).cast::<Node>();
        // SAFETY: nodes are never freed.
        if let Some(before) = unsafe { before.as_ref() } {
            before.next.store(this, Ordering::Release);
            Sim::spin_until(|| node.waiting.load(Ordering::Acquire) == 0);
        }
        NonNull::from(node)
    }

    fn try_lock(&self) -> Option<NonNull<Node>> {
        None
    }

    unsafe fn unlock(&self, held: NonNull<Node>) {
        // SAFETY: nodes are never freed.
        let next = unsafe { held.as_ref() }.next.load(Ordering::Acquire);
        // SAFETY: `next` leads to a node, and these are never freed.
        match unsafe { next.cast::<Node>().as_ref() } {
            Some(next) => next.waiting.store(0, Ordering::Release),
            None => self.0.store(null_mut(), Ordering::Release),
        }
    }

    fn is_locked(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }
}

//! K42's variant of the MCS lock (Auslander, Edelsohn, Krieger, Rosenburg and Wisniewski, 2003;
//! case study 004).
//!
//! Waiters queue and spin on their own nodes, but the holder has no node: at the end of its wait a
//! waiter moves its node's content, the successor, into the lock. So a node lives on the stack of a
//! waiting `lock`, and an acquisition carries nothing to its release.
//!
//! ```text
//! tail:  null = free;  HELD = held, no waiters;  else the last waiter's node
//! next:  the first waiter, once it has linked itself; null while the lock is free
//!
//! lock:    if cas(tail, null, HELD): done
//!          put node at the tail, behind prev (HELD: link as lock.next, else as prev.next)
//!          wait until node.waiting == 0
//!          if node.next: lock.next = node.next
//!          else: lock.next = null
//!                if !cas(tail, node, HELD): wait until node.next; lock.next = node.next
//! unlock:  if lock.next == null:
//!              if cas(tail, HELD, null): done
//!              wait until lock.next
//!          lock.next.waiting = 0
//! ```
//!
//! The original stores the lock's own address where this one stores `HELD`; a constant lets the
//! lock be moved while it is held (by a forgotten guard), and be in a `static`.

use super::McsNode;
use super::mcs::{hand_over, linked, wait_turn};
use crate::ecosystem::impl_lock_apis;
use crate::raw::RawLock;
use core::ptr;
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The tail of a held lock without waiters. No node is at address 1.
const HELD: *mut () = ptr::without_provenance_mut(1);

/// The lock: 16 bytes (`tail`, `next`). FIFO.
#[repr(C)]
pub struct K42<M: Machine> {
    tail: M::AtomicPtr,
    /// Written by the holder, and by the task that queues directly behind it.
    next: M::AtomicPtr,
}

impl<M: Machine> K42<M> {
    /// Acquires the lock if it is free; otherwise returns the tail.
    #[inline]
    fn take(&self) -> Result<(), *mut ()> {
        // Acquire: pairs with the releasing exchange in `hand_over`.
        self.tail
            .compare_exchange(ptr::null_mut(), HELD, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
    }

    #[cold]
    fn lock_contended(&self, mut prev: *mut ()) {
        let node = McsNode::<M>::default();
        node.waiting.store(1, Ordering::Relaxed);
        let this = ptr::from_ref(&node).cast_mut().cast::<()>();
        loop {
            if prev.is_null() {
                match self.take() {
                    Ok(()) => return,
                    Err(tail) => prev = tail,
                }
                continue;
            }
            // Release: the next in line sees the node initialised. Acquire: this task sees `prev`'s
            // initialised, and the `next` that a holder has cleared.
            match self
                .tail
                .compare_exchange(prev, this, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(tail) => prev = tail,
            }
        }
        let link = if prev == HELD {
            &self.next
        } else {
            // SAFETY: `prev` was the last waiter, whose `lock` does not return before
            // it has seen this store.
            unsafe { &(*prev.cast::<McsNode<M>>()).next }
        };
        // Release: pairs with the acquire loads of `next` in `leave`, `linked` and `hand_over`.
        link.store(this, Ordering::Release);
        // `hand_over` stores with release.
        wait_turn(&node);
        self.leave(&node, this);
    }

    /// Moves the successor from the node into the lock, which the caller holds.
    fn leave(&self, node: &McsNode<M>, this: *mut ()) {
        // Acquire: pairs with the release by which the successor links itself.
        let mut next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
            // Release: a task that queues behind `HELD` writes `next` after the line above.
            if self
                .tail
                .compare_exchange(this, HELD, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
            next = linked::<M>(&node.next);
        }
        self.next.store(next, Ordering::Relaxed);
    }
}

// SAFETY: a task acquires the lock by exchanging null for `HELD`, or when the holder hands it over
// through `waiting`, which only the holder clears, for one waiter.
unsafe impl<M: Machine> RawLock<M> for K42<M> {
    type Held = ();
    const NAME: &'static str = "k42";

    fn new() -> Self {
        K42 {
            tail: M::AtomicPtr::new(ptr::null_mut()),
            next: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn lock(&self) {
        if let Err(tail) = self.take() {
            self.lock_contended(tail);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.take().ok()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the caller holds the lock, and a waiter's node stays in place in `lock` until
        // `waiting` is cleared.
        unsafe { hand_over::<M>(&self.tail, HELD, &self.next) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}

impl_lock_apis!([M: Machine<AtomicPtr: ConstInit>] K42<M> = K42 {
    tail: ConstInit::ZERO,
    next: ConstInit::ZERO,
});

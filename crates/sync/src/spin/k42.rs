//! K42's variant of the MCS lock (Auslander, Edelsohn, Krieger, Rosenburg and
//! Wisniewski, 2003; seed 004).
//!
//! Waiters queue and spin locally as in [`super::Mcs`], but the holder has no node: at
//! the end of its wait a waiter moves what its node knows, the successor, into the
//! lock. So a node lives on the stack of a waiting `lock`, and nothing is carried
//! to the release.
//!
//! ```text
//! tail:  null = free;  HELD = held, nobody waits;  else the last waiter's node
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
//! The original stores the lock's own address where this stores `HELD`; a constant
//! lets the lock move while it is held (by a forgotten guard) and stand in a `static`.

use super::McsNode;
use super::mcs::wait_turn;
use crate::RawLock;
use crate::ecosystem::impl_lock_api;
use core::ptr;
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The tail of a lock that is held while nobody waits. No node is at address 1.
const HELD: *mut () = ptr::without_provenance_mut(1);

/// The lock: 16 bytes (`tail`, `next`). FIFO.
#[repr(C)]
pub struct K42<M: Machine> {
    tail: M::AtomicPtr,
    /// Written by the holder, and by the one who queues directly behind it.
    next: M::AtomicPtr,
}

impl<M: Machine> K42<M> {
    /// Takes the lock if it is free; else says what the tail was.
    #[inline]
    fn take(&self) -> Result<(), *mut ()> {
        // Acquire: pairs with the releasing exchange in `unlock`.
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
            // Release: the next in line sees the node initialised. Acquire: so do we
            // with `prev`'s, and see the `next` that a holder has cleared.
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
        // Release: pairs with the acquire loads of `next` below and in `unlock`.
        link.store(this, Ordering::Release);
        // `unlock` stores with release.
        wait_turn(&node);
        self.leave(&node, this);
    }

    /// The lock is ours: moves the successor from the node into the lock.
    fn leave(&self, node: &McsNode<M>, this: *mut ()) {
        let mut next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
            // Release: who queues behind `HELD` writes `next` after the line above.
            if self
                .tail
                .compare_exchange(this, HELD, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
            M::spin_until(|| {
                next = node.next.load(Ordering::Acquire);
                !next.is_null()
            });
        }
        self.next.store(next, Ordering::Relaxed);
    }
}

// SAFETY: the lock is acquired by exchanging null for `HELD`, or by being handed it
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
        let mut next = self.next.load(Ordering::Acquire);
        if next.is_null() {
            // Release: pairs with the acquire in `take`.
            let emptied = self.tail.compare_exchange(
                HELD,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if emptied.is_ok() {
                return;
            }
            M::spin_until(|| {
                next = self.next.load(Ordering::Acquire);
                !next.is_null()
            });
        }
        // SAFETY: the successor waits in `lock` until `waiting` is cleared.
        let next = unsafe { &*next.cast::<McsNode<M>>() };
        // Release: pairs with the acquire of the successor's spin.
        next.waiting.store(0, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}

impl_lock_api!([M: Machine<AtomicPtr: ConstInit>] K42<M> = K42 {
    tail: ConstInit::ZERO,
    next: ConstInit::ZERO,
});

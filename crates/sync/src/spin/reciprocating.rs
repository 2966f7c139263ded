//! Reciprocating locks (Dice and Kogan, PPoPP 2025). Oracle has applied for a patent on them: US
//! 2026/0050478.
//!
//! Waiters arrive by pushing a node on a stack, in one exchange, and each learns who lies below it.
//! When the holder has no successor, it takes the whole stack as a *segment*, which is served from
//! the top: the last that came goes first, and hands the lock to the one below. So each waiter
//! spins on its own node, nobody follows a pointer to a node but to hand the lock over, and a task
//! that waits is overtaken at most once by each other, which is then in the next segment.
//!
//! ```text
//! arrivals:  null = free;  HELD = held, nobody has arrived;  else the last arrival's node
//! held:      below: the waiter that gets the lock next, or null
//!            end: what lies at the bottom of the holder's segment
//!
//! lock:    if cas(arrivals, null, HELD): held.below = null; done
//!          found = swap(arrivals, node)
//!          if found == null:                       # it was released meanwhile
//!              top = swap(arrivals, HELD)          # takes the arrivals above this node
//!              held.below = top if top != node else null;  held.end = node;  done
//!          wait until node.gate;  held.end = node.gate
//!          held.below = found if found != held.end else null
//! unlock:  if held.below: held.below.gate = held.end; done
//!          if cas(arrivals, HELD, null): done
//!          swap(arrivals, HELD).gate = HELD
//! ```
//!
//! In the paper a holder's node stays in `arrivals` as the mark of a held lock. Here the mark is
//! `HELD`, so that a node dies when `lock` returns. Only a task that finds the lock free in its
//! exchange has left its node there; it takes the arrivals above it at once, and its node's
//! address, which nobody follows, is the end of that segment.

use crate::ecosystem::impl_lock_api;
use crate::effort::note_spins;
use crate::raw::RawLock;
use core::ptr;
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The mark of a held lock without arrivals. No node is at address 1.
const HELD: *mut () = ptr::without_provenance_mut(1);

/// The lock: 8 bytes. Within a segment the last that came goes first.
pub struct Reciprocating<M: Machine> {
    arrivals: M::AtomicPtr,
}

/// An acquisition of a [`Reciprocating`] lock: what is left of its segment.
pub struct ReciprocatingHeld {
    below: *mut (),
    end: *mut (),
}

/// A waiter's node.
struct Node<M: Machine> {
    /// Null until the lock is handed over; then the end of the segment.
    gate: M::AtomicPtr,
}

impl<M: Machine> Reciprocating<M> {
    /// Acquires the lock if it is free.
    #[inline]
    fn take(&self) -> Option<ReciprocatingHeld> {
        // Acquire: pairs with the releasing exchange in `unlock`.
        let taken = self.arrivals.compare_exchange(
            ptr::null_mut(),
            HELD,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        taken.ok().map(|_| ReciprocatingHeld {
            below: ptr::null_mut(),
            end: HELD,
        })
    }

    #[cold]
    fn lock_contended(&self) -> ReciprocatingHeld {
        let node = Node::<M> {
            gate: M::AtomicPtr::new(ptr::null_mut()),
        };
        let this = ptr::from_ref(&node).cast_mut().cast::<()>();
        // Release: the task that takes the segment sees the node initialised. Acquire: of a free
        // lock, pairs with the releasing exchange in `unlock`; of a node, with this release.
        let found = self.arrivals.swap(this, Ordering::AcqRel);
        if found.is_null() {
            // Acquire: sees the nodes of those that came since.
            let top = self.arrivals.swap(HELD, Ordering::Acquire);
            let below = if top == this { ptr::null_mut() } else { top };
            return ReciprocatingHeld { below, end: this };
        }
        let mut looks = 0u32;
        let mut end = ptr::null_mut();
        M::spin_until(|| {
            looks = looks.saturating_add(1);
            // Acquire: pairs with the release in `hand_over`.
            end = node.gate.load(Ordering::Acquire);
            !end.is_null()
        });
        note_spins::<M>(looks);
        let below = if found == end { ptr::null_mut() } else { found };
        ReciprocatingHeld { below, end }
    }

    /// Hands the lock to a waiter of the segment that ends with `end`.
    ///
    /// # Safety
    /// The caller holds the lock, and `waiter` is the node of a task that waits for it.
    #[inline]
    unsafe fn hand_over(waiter: *mut (), end: *mut ()) {
        // SAFETY: the node stays in place in `lock` until its gate is open.
        let waiter = unsafe { &*waiter.cast::<Node<M>>() };
        // Release: pairs with the acquire of the waiter's spin.
        waiter.gate.store(end, Ordering::Release);
    }
}

// SAFETY: a task acquires the lock by exchanging null, for `HELD` or for its node, or when the
// holder opens its gate, which only the holder does, for one waiter.
unsafe impl<M: Machine> RawLock<M> for Reciprocating<M> {
    type Held = ReciprocatingHeld;
    const NAME: &'static str = "reciprocating";

    fn new() -> Self {
        Reciprocating {
            arrivals: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn lock(&self) -> ReciprocatingHeld {
        self.take().unwrap_or_else(|| self.lock_contended())
    }

    #[inline]
    fn try_lock(&self) -> Option<ReciprocatingHeld> {
        self.take()
    }

    #[inline]
    unsafe fn unlock(&self, held: ReciprocatingHeld) {
        if !held.below.is_null() {
            // SAFETY: the caller holds the lock; `below` was found on the stack of arrivals.
            return unsafe { Self::hand_over(held.below, held.end) };
        }
        // Release: pairs with the acquire by which a task finds the lock free.
        let emptied = self.arrivals.compare_exchange(
            HELD,
            ptr::null_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if emptied.is_err() {
            // Acquire: sees the node at the top initialised, and by its own acquire the next ones.
            let top = self.arrivals.swap(HELD, Ordering::Acquire);
            // SAFETY: the caller holds the lock; there was more than the mark, so it is a node.
            unsafe { Self::hand_over(top, HELD) };
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.arrivals.load(Ordering::Relaxed).is_null()
    }
}

impl_lock_api!([M: Machine<AtomicPtr: ConstInit>] Reciprocating<M> = Reciprocating {
    arrivals: ConstInit::ZERO,
});

//! The MCS queue lock (Mellor-Crummey and Scott, 1991).
//!
//! Waiters form a list; each spins on a flag in its own node, so a release
//! touches one other CPU's line however many wait. FIFO.
//!
//! ```text
//! lock:    node.next = null; node.waiting = 1
//!          pred = swap(tail, node)
//!          if pred: pred.next = node; wait until node.waiting == 0
//! unlock:  if node.next == null:
//!              if cas(tail, node, null): done
//!              wait until node.next != null
//!          node.next.waiting = 0
//! ```
//!
//! Two ways to use it: with a node of the caller's, on its stack
//! ([`Mcs::lock_with`]), or as a [`RawLock`], with a node from the task's pool.

use super::pool::{self, Slot};
use crate::ecosystem::impl_lock_api;
use crate::watch::note_spins;
use crate::{RawLock, locals};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The lock: 8 bytes, a pointer to the last node in the queue or null.
pub struct Mcs<M: Machine> {
    tail: M::AtomicPtr,
}

/// A place in the queue; it must not move or die between `lock` and `unlock`.
pub struct McsNode<M: Machine> {
    /// The successor; written by it, read by the node's owner.
    pub(super) next: M::AtomicPtr,
    /// 1 until the predecessor hands the lock over; cleared by it.
    pub(super) waiting: M::AtomicU32,
    machine: PhantomData<M>,
}

impl<M: Machine> Default for McsNode<M> {
    fn default() -> Self {
        McsNode {
            next: M::AtomicPtr::new(ptr::null_mut()),
            waiting: M::AtomicU32::new(0),
            machine: PhantomData,
        }
    }
}

/// Waits until the predecessor hands the lock over.
#[cold]
pub(super) fn wait_turn<M: Machine>(node: &McsNode<M>) {
    let mut looks = 0u32;
    M::spin_until(|| {
        looks = looks.saturating_add(1);
        // Acquire: pairs with the release store of the predecessor.
        node.waiting.load(Ordering::Acquire) == 0
    });
    note_spins::<M>(looks);
}

impl<M: Machine> Mcs<M> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Mcs {
            tail: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Acquires the lock with `node` as the place in the queue.
    ///
    /// # Safety
    /// `node` is in no queue, and stays valid and in place until
    /// [`Mcs::unlock_with`] returns.
    #[inline]
    pub unsafe fn lock_with(&self, node: &McsNode<M>) {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.waiting.store(1, Ordering::Relaxed);
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        // Acquire: pairs with the releasing exchange of an unlock that left the queue
        // empty. Release: whoever finds this node as predecessor sees it initialised.
        let predecessor = self.tail.swap(this, Ordering::AcqRel);
        if !predecessor.is_null() {
            // SAFETY: a predecessor waits in `unlock_with` until it has seen `next`.
            let predecessor = unsafe { &*predecessor.cast::<McsNode<M>>() };
            // Release: pairs with the acquire loads of `next` in `unlock_with`.
            predecessor.next.store(this, Ordering::Release);
            // `unlock_with` stores with release.
            wait_turn(node);
        }
    }

    /// Acquires the lock with `node` if it is free.
    ///
    /// # Safety
    /// As [`Mcs::lock_with`], if it returns `true`.
    #[inline]
    pub unsafe fn try_lock_with(&self, node: &McsNode<M>) -> bool {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        // Acquire and release: as in `lock_with`.
        self.tail
            .compare_exchange(ptr::null_mut(), this, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock by [`Mcs::lock_with`] of this `node`.
    #[inline]
    pub unsafe fn unlock_with(&self, node: &McsNode<M>) {
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        let mut next = node.next.load(Ordering::Acquire);
        if next.is_null() {
            // Release: pairs with the acquiring swap in `lock_with`.
            let emptied = self.tail.compare_exchange(
                this,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if emptied.is_ok() {
                return;
            }
            M::spin_until(|| {
                next = node.next.load(Ordering::Acquire);
                !next.is_null()
            });
        }
        // SAFETY: the successor waits in `lock_with` until `waiting` is cleared.
        let next = unsafe { &*next.cast::<McsNode<M>>() };
        // Release: pairs with the acquire of the successor's spin.
        next.waiting.store(0, Ordering::Release);
    }
}

impl<M: Machine> pool::Node for McsNode<M> {
    const WORD: usize = locals::MCS_NODES;
    /// Only neighbours in the queue touch a node, and its owner waits for them.
    const PEEKED: bool = false;
}

/// An acquisition of an [`Mcs`] as a [`RawLock`]: its node.
pub struct McsHeld<M: Machine>(NonNull<Slot<McsNode<M>>>);

// SAFETY: the tail is exchanged from null by one, and the lock handed over by the
// holder to its one successor. A node from the pool stays in place until `unlock`
// gives it back; that of a forgotten acquisition, for ever.
unsafe impl<M: Machine> RawLock<M> for Mcs<M> {
    type Held = McsHeld<M>;
    const NAME: &'static str = "mcs";

    fn new() -> Self {
        Mcs::new()
    }

    #[inline]
    fn lock(&self) -> McsHeld<M> {
        let slot = pool::take::<M, McsNode<M>>();
        // SAFETY: just taken, and given back after the release only.
        unsafe { self.lock_with(&slot.as_ref().node) };
        McsHeld(slot)
    }

    #[inline]
    fn try_lock(&self) -> Option<McsHeld<M>> {
        if self.is_locked() {
            return None;
        }
        let slot = pool::take::<M, McsNode<M>>();
        // SAFETY: as in `lock`.
        if unsafe { self.try_lock_with(&slot.as_ref().node) } {
            Some(McsHeld(slot))
        } else {
            // SAFETY: it did not get into the queue.
            unsafe { pool::give::<M, _>(slot) };
            None
        }
    }

    #[inline]
    unsafe fn unlock(&self, held: McsHeld<M>) {
        // SAFETY: the node the lock was acquired with; after the release it is in no
        // queue any more.
        unsafe {
            self.unlock_with(&held.0.as_ref().node);
            pool::give::<M, _>(held.0);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        !self.tail.load(Ordering::Relaxed).is_null()
    }
}

impl<M: Machine> Default for Mcs<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl_lock_api!([M: Machine<AtomicPtr: ConstInit>] Mcs<M> = Mcs { tail: ConstInit::ZERO });

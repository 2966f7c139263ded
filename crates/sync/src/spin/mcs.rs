//! The MCS queue lock (Mellor-Crummey and Scott, 1991).
//!
//! Waiters form a list; each spins on a flag in its own node, so a release touches the cache line
//! of one other CPU, however many wait. FIFO.
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
//! A caller uses it with its own node, on its stack ([`Mcs::lock_with`]), or as a [`RawLock`], with
//! a node from the task's pool.

use super::pool::{self, Slot};
use crate::ecosystem::impl_lock_api;
use crate::effort::note_spins;
use crate::locals;
use crate::raw::RawLock;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The lock: 8 bytes, a pointer to the last node in the queue or null.
pub struct Mcs<M: Machine> {
    tail: M::AtomicPtr,
}

/// A place in the queue; it must not move or die between `lock` and `unlock`.
pub struct McsNode<M: Machine> {
    /// The successor, which writes it; the node's owner reads it.
    pub(super) next: M::AtomicPtr,
    /// 1 until the predecessor hands the lock over and clears it.
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

/// Waits until a successor, which is already in the tail, has linked itself to `next`.
#[inline(always)]
pub(super) fn linked<M: Machine>(next: &M::AtomicPtr) -> *mut () {
    let mut found = ptr::null_mut();
    M::spin_until(|| {
        // Acquire: pairs with the release by which the successor links itself.
        found = next.load(Ordering::Acquire);
        !found.is_null()
    });
    found
}

/// Releases a lock whose `tail` is `alone` if no task waits, and whose first waiter otherwise
/// links itself to `next`.
///
/// # Safety
/// The caller holds the lock; a waiter's node stays in place until its `waiting` is cleared.
#[inline(always)]
pub(super) unsafe fn hand_over<M: Machine>(
    tail: &M::AtomicPtr,
    alone: *mut (),
    next: &M::AtomicPtr,
) {
    // Acquire: pairs with the release by which the successor links itself.
    let mut successor = next.load(Ordering::Acquire);
    if successor.is_null() {
        // Release: pairs with the acquire by which a task finds the lock free.
        let emptied =
            tail.compare_exchange(alone, ptr::null_mut(), Ordering::Release, Ordering::Relaxed);
        if emptied.is_ok() {
            return;
        }
        successor = linked::<M>(next);
    }
    // SAFETY: the successor's node stays in place until `waiting` is cleared.
    let successor = unsafe { &*successor.cast::<McsNode<M>>() };
    // Release: pairs with the acquire of the successor's spin.
    successor.waiting.store(0, Ordering::Release);
}

impl<M: Machine> Mcs<M> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Mcs {
            tail: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Acquires the lock, with `node` as its place in the queue.
    ///
    /// # Safety
    /// `node` is in no queue, and stays valid and in place until
    /// [`Mcs::unlock_with`] returns.
    #[inline]
    pub unsafe fn lock_with(&self, node: &McsNode<M>) {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.waiting.store(1, Ordering::Relaxed);
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        // Acquire: pairs with the releasing exchange of an unlock that left the queue empty.
        // Release: a successor sees this node initialised.
        let predecessor = self.tail.swap(this, Ordering::AcqRel);
        if !predecessor.is_null() {
            // SAFETY: a predecessor waits in `unlock_with` until it has seen `next`.
            let predecessor = unsafe { &*predecessor.cast::<McsNode<M>>() };
            // Release: pairs with the acquire loads of `next` in `hand_over`.
            predecessor.next.store(this, Ordering::Release);
            // `hand_over` stores with release.
            wait_turn(node);
        }
    }

    /// Acquires the lock with `node` if it is free.
    ///
    /// # Safety
    /// `node` is in no queue. If this returns true, it stays valid and in place until
    /// [`Mcs::unlock_with`] returns.
    #[inline]
    pub unsafe fn try_lock_with(&self, node: &McsNode<M>) -> bool {
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        let this = ptr::from_ref(node).cast_mut().cast::<()>();
        // Acquire: pairs with the exchange of an unlock. Release: a successor sees this node
        // initialised.
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
        // SAFETY: the caller holds the lock, and a successor waits in `lock_with`, where its node
        // stays in place, until `waiting` is cleared.
        unsafe { hand_over::<M>(&self.tail, this, &node.next) };
    }
}

impl<M: Machine> pool::Node for McsNode<M> {
    const WORD: usize = locals::MCS_NODES;
    /// Only the neighbours in the queue access a node, and its owner waits for them.
    const PEEKED: bool = false;
}

/// An acquisition of an [`Mcs`] as a [`RawLock`]: its node.
pub struct McsHeld<M: Machine>(NonNull<Slot<McsNode<M>>>);

// SAFETY: one task exchanges the tail from null, and the holder hands the lock over to its one
// successor. A node from the pool stays in place until `unlock` returns it; that of a forgotten
// acquisition, forever.
unsafe impl<M: Machine> RawLock<M> for Mcs<M> {
    type Held = McsHeld<M>;
    const NAME: &'static str = "mcs";

    fn new() -> Self {
        Mcs::new()
    }

    #[inline]
    fn lock(&self) -> McsHeld<M> {
        let slot = pool::take::<M, McsNode<M>>();
        // SAFETY: the call has just taken the node from the pool, and it returns only after the
        // release.
        unsafe { self.lock_with(&slot.as_ref().node) };
        McsHeld(slot)
    }

    #[inline]
    fn try_lock(&self) -> Option<McsHeld<M>> {
        if self.is_locked() {
            return None;
        }
        let slot = pool::take::<M, McsNode<M>>();
        // SAFETY: the call has just taken the node from the pool, and it returns only after the
        // release.
        if unsafe { self.try_lock_with(&slot.as_ref().node) } {
            Some(McsHeld(slot))
        } else {
            // SAFETY: the node was not queued, so only this task knows it.
            unsafe { pool::give::<M, _>(slot) };
            None
        }
    }

    #[inline]
    unsafe fn unlock(&self, held: McsHeld<M>) {
        // SAFETY: the lock was acquired with this node; after the release the node is in no queue.
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

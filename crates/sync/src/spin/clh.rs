//! The CLH queue lock (Craig, 1993; Landin and Hagersten, 1994).
//!
//! The queue is implicit: a waiter knows only its predecessor, and spins on the predecessor's node.
//! A release is one store, uncontended or not, and never waits. FIFO. The node in the tail belongs
//! to the lock; the task that follows a node owns it afterwards, so nodes move from task to task.
//!
//! ```text
//! state of a node:  FREE;  HELD (by its task, or it waits);  else left: the node to follow instead
//!
//! lock:    node.state = HELD;  pred = swap(tail, node);  follow pred
//! follow:  wait until pred.state != HELD
//!          if pred.state == FREE: done, pred is now own;  else follow pred.state, pred is now own
//! unlock:  node.state = FREE
//! try:     pred = tail;  if pred.state == HELD: no
//!          node.state = HELD;  if !cas(tail, pred, node): no
//!          if pred is FREE (it nearly always is): done
//!          leave: if !cas(tail, node, pred): node.state = pred;  no
//! ```
//!
//! The last two lines of `try` are needed because between the read and the exchange `pred` may have
//! left the queue, been reused, and joined the queue of the same lock again: then the attempt is
//! queued behind a holder, and leaves the queue without waiting. To keep the read itself safe,
//! nodes never return to the allocator while the machine lives.

use super::pool::{self, Slot};
use crate::ecosystem::impl_lock_api;
use crate::effort::note_spins;
use crate::locals;
use crate::raw::RawLock;
use core::ptr::{self, NonNull};
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The state of a node whose follower holds the lock.
const FREE: *mut () = ptr::null_mut();
/// The state of a node whose follower must wait. No node is at address 1.
const HELD: *mut () = ptr::without_provenance_mut(1);

/// The lock: 8 bytes, and the node of its last holder (128 bytes) once it has had one.
pub struct Clh<M: Machine> {
    /// The last node in the queue; null before the first acquisition.
    tail: M::AtomicPtr,
}

/// A place in the queue.
pub(crate) struct ClhNode<M: Machine> {
    /// [`FREE`], [`HELD`] or the node to follow instead. Written by the node's task.
    state: M::AtomicPtr,
}

impl<M: Machine> Default for ClhNode<M> {
    fn default() -> Self {
        ClhNode {
            state: M::AtomicPtr::new(HELD),
        }
    }
}

impl<M: Machine> pool::Node for ClhNode<M> {
    const WORD: usize = locals::CLH_NODES;
    const PEEKED: bool = true;
}

/// An acquisition of a [`Clh`]: its node.
pub struct ClhHeld<M: Machine>(Place<M>);

type Place<M> = NonNull<Slot<ClhNode<M>>>;

/// The state of a node.
///
/// `place` is or was a node; the memory of a node always remains one.
#[inline]
unsafe fn state<M: Machine>(place: &Place<M>) -> &M::AtomicPtr {
    // SAFETY: nodes live as long as the machine, and this field is atomic.
    unsafe { &place.as_ref().node.state }
}

impl<M: Machine> Clh<M> {
    /// A node that is ready to be queued.
    #[inline]
    fn node() -> Place<M> {
        let node = pool::take::<M, ClhNode<M>>();
        // SAFETY: the call has just taken the node from the pool.
        unsafe { state(&node) }.store(HELD, Ordering::Relaxed);
        node
    }

    /// Passes nodes whose tasks have left the queue, from `pred` on, behind which the caller's node
    /// is queued. `Ok`: the caller holds the lock. `Err`: the node for which the caller must wait.
    #[inline]
    fn follow(mut pred: Place<M>) -> Result<(), Place<M>> {
        loop {
            // SAFETY: it is the caller's predecessor.
            // Acquire: pairs with the release stores in `unlock` and `leave`.
            let next = unsafe { state(&pred) }.load(Ordering::Acquire);
            if next == HELD {
                return Err(pred);
            }
            // SAFETY: no other task follows `pred`, and its task no longer uses it.
            unsafe { pool::give::<M, _>(pred) };
            match NonNull::new(next.cast()) {
                None => return Ok(()),
                Some(next) => pred = next,
            }
        }
    }

    #[cold]
    fn wait(mut pred: Place<M>) {
        let mut round = 0;
        while let Err(behind) = Self::follow(pred) {
            pred = behind;
            M::relax(round);
            round = round.saturating_add(1);
        }
        note_spins::<M>(round);
    }

    /// Leaves the queue, from behind `pred`.
    #[cold]
    fn leave(&self, node: Place<M>, pred: Place<M>) {
        let this = node.as_ptr().cast();
        // Release: a task that finds `pred` in the tail sees it initialised, as this one did.
        match self.tail.compare_exchange(
            this,
            pred.as_ptr().cast(),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            // SAFETY: no node is queued behind it, and with the tail exchanged none can be.
            Ok(_) => unsafe { pool::give::<M, _>(node) },
            // Release: pairs with the acquire in `follow`. The node now belongs to its follower.
            // SAFETY: the node belongs to this task until the store.
            Err(_) => unsafe { state(&node) }.store(pred.as_ptr().cast(), Ordering::Release),
        }
    }
}

// SAFETY: at most one other node follows each node, and only when its task has released the lock,
// or has left the queue and named the node before it.
unsafe impl<M: Machine> RawLock<M> for Clh<M> {
    type Held = ClhHeld<M>;
    const NAME: &'static str = "clh";

    fn new() -> Self {
        Clh {
            tail: M::AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline]
    fn lock(&self) -> ClhHeld<M> {
        let node = Self::node();
        // Release: the successor sees the node as HELD, not as it was in an earlier use. Acquire:
        // this task sees the predecessor's node likewise.
        let pred = self.tail.swap(node.as_ptr().cast(), Ordering::AcqRel);
        if let Some(pred) = NonNull::new(pred.cast())
            && let Err(pred) = Self::follow(pred)
        {
            Self::wait(pred);
        }
        ClhHeld(node)
    }

    fn try_lock(&self) -> Option<ClhHeld<M>> {
        let pred = self.tail.load(Ordering::Acquire);
        let place = NonNull::new(pred.cast());
        if let Some(pred) = &place
            // SAFETY: a pointer from a tail is a node. Relaxed: a guess, verified below.
            && unsafe { state::<M>(pred) }.load(Ordering::Relaxed) == HELD
        {
            return None;
        }
        let node = Self::node();
        // AcqRel: release so that the successor sees the node as HELD, acquire for the
        // predecessor's node.
        if self
            .tail
            .compare_exchange(
                pred,
                node.as_ptr().cast(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_err()
        {
            // SAFETY: the node was not queued, so only this task has it.
            unsafe { pool::give::<M, _>(node) };
            return None;
        }
        if let Some(pred) = place
            && let Err(pred) = Self::follow(pred)
        {
            self.leave(node, pred);
            return None;
        }
        Some(ClhHeld(node))
    }

    #[inline]
    unsafe fn unlock(&self, held: ClhHeld<M>) {
        // Release: pairs with the acquire in `follow`.
        // SAFETY: the holder's node; from here on it belongs to the lock or a successor.
        unsafe { state(&held.0) }.store(FREE, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        let mut place = NonNull::new(self.tail.load(Ordering::Acquire).cast());
        while let Some(node) = place {
            // SAFETY: a pointer from a tail or from a followed node is a node.
            let next = unsafe { state::<M>(&node) }.load(Ordering::Acquire);
            if next == HELD {
                return true;
            }
            place = NonNull::new(next.cast());
        }
        false
    }
}

impl<M: Machine> Drop for Clh<M> {
    fn drop(&mut self) {
        let mut place = NonNull::new(self.tail.load(Ordering::Acquire).cast());
        while let Some(node) = place {
            // SAFETY: the tail's node belongs to the lock.
            let next = unsafe { state::<M>(&node) }.load(Ordering::Acquire);
            if next == HELD {
                // A guard was forgotten: its node is lost with it.
                return;
            }
            // SAFETY: the tail's node belongs to the lock, and a dropped lock gets no more waiters.
            unsafe { pool::discard::<M, _>(node) };
            place = NonNull::new(next.cast());
        }
    }
}

impl_lock_api!([M: Machine<AtomicPtr: ConstInit>] Clh<M> = Clh { tail: ConstInit::ZERO });

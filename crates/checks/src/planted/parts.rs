//! Parts and protocols with one step broken.

use crate::races::scenarios::hazard::Protect;
use machine::{Atomic, Atomics, Frame, Machine, Ordering};
use sim::Sim;
use sync::epoch::Protocol;
use sync::hazard::Slot;
use vm::system::{Extent, Invalidation, Part};
use vm::{Best, System};

/// The epoch has passed one step too early.
pub enum EarlyGrace {}

// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for EarlyGrace {
    const GRACE: u64 = 1;
}

/// Sections are made visible without a fence: a scan may miss a section whose store is still in the
/// store buffer, while the section reads an object that is being retired.
pub enum NoFence {}

// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for NoFence {
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.store(value, Ordering::Release);
    }
}

/// An object is named only once it was found twice: a scan in between reclaims it.
pub enum NamesLate {}

impl Protect for NamesLate {
    fn protect(slot: &mut Slot<'_, Sim>, source: &<Sim as Atomics>::AtomicPtr) -> *mut () {
        loop {
            let seen = source.load(Ordering::Relaxed);
            Sim::light_fence();
            if source.load(Ordering::Acquire) == seen {
                slot.name(seen);
                return seen;
            }
        }
    }
}

/// `vm`'s parts, but without waiting for CPUs that unmap.
pub struct NoInvalidation;

impl System for NoInvalidation {
    type Machine = Sim;
    type Invalidation = NoWait;
    type Swap = <Best<Sim> as System>::Swap;
    type Gate = vm::system::NoGate;
    type Queues = vm::system::NoQueues;
    type PvLocks = vm::system::PvBytes;
    type PvChunks = vm::system::NoChunks;
}

/// No delayed invalidation at all.
pub struct NoWait;

impl Part<Sim> for NoWait {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, vm::Error> {
        Ok(NoWait)
    }
}

// SAFETY: none; it breaks the contract, and the check must find that.
unsafe impl Invalidation<Sim> for NoWait {
    type Block<'a> = ();
    type Held<'a> = ();
    type Page = ();

    fn may_sleep(&self) -> bool {
        true
    }
    fn begin(&self) {}
    fn note(&self, _: &(), _: Frame, _: &()) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {}
}

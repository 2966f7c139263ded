//! Protocols with one point broken.

use machine::{Atomic, CpuRange, Frame, Machine, Ordering};
use sim::Sim;
use sync::epoch::Protocol;
use vm::policy::Invalidation;
use vm::{Best, System};

/// The epoch has passed one step too early.
pub enum EarlyGrace {}

// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for EarlyGrace {
    const GRACE: u64 = 1;
}

/// Sections are made visible without a fence: a scan may miss one whose store is still on
/// its way, while the section reads an object that is being retired.
pub enum NoFence {}

// SAFETY: none; it is a flaw, made only where it is to be found.
unsafe impl Protocol for NoFence {
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.store(value, Ordering::Release);
    }
}

/// `vm`'s policies, but without waiting for CPUs that unmap.
pub struct NoInvalidation;

impl System for NoInvalidation {
    type Machine = Sim;
    type Invalidation = NoWait;
    type Swap = <Best<Sim> as System>::Swap;
    type Locking = <Best<Sim> as System>::Locking;
    type Regions = vm::policy::NoRegions;
    type Queues = vm::policy::NoQueues;
    type PvLocks = vm::policy::PvBytes;
    type PvChunks = vm::policy::PvInTables;
}

/// No delayed invalidation at all.
pub struct NoWait;

// SAFETY: none; it breaks the promise, and the check must find that.
unsafe impl Invalidation<Sim> for NoWait {
    type Block<'a> = ();
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), _: CpuRange, _: usize) -> Result<Self, vm::Error> {
        Ok(NoWait)
    }
    fn new_page() {}
    fn may_sleep(&self) -> bool {
        true
    }
    fn begin(&self) {}
    fn note(&self, _: &(), _: Frame, _: &()) {}
    fn enter(&self) {}
    fn reverse(&self) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {}
}

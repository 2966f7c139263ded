//! Protocols with one point broken.

use baselines::freebsd::{ListLocks, PvListHeld, PvListLocks};
use machine::{Atomic, CpuRange, Frame, Machine, Ordering};
use sim::Sim;
use sync::epoch::Protocol;
use vm::lock::PvLock;
use vm::policy::{Invalidation, PvLocking};
use vm::{Best, Policies};

/// The epoch has passed one step too early.
pub enum EarlyGrace {}

impl Protocol for EarlyGrace {
    const GRACE: u64 = 1;
}

/// Sections are made visible without a fence: a scan may miss one whose store is still on
/// its way, while the section reads what is being retired.
pub enum NoFence {}

impl Protocol for NoFence {
    fn publish<M: Machine>(epoch: &M::AtomicU64, value: u64) {
        epoch.store(value, Ordering::Release);
    }
}

/// `vm`'s policies, but nobody waits for those who unmap.
pub struct NoInvalidation;

impl Policies<Sim> for NoInvalidation {
    type Invalidation = NoWait;
    type Swap = <Best as Policies<Sim>>::Swap;
    type Locking = <Best as Policies<Sim>>::Locking;
    type Regions = vm::policy::NoRegions;
    type Queues = vm::policy::NoQueues;
    type PvLocks = vm::policy::PvBytes;
    type PvChunks = vm::policy::PvInTables;
}

/// No delayed invalidation at all.
pub struct NoWait;

// SAFETY: none; it breaks the promise, and that is what has to be found.
unsafe impl Invalidation<Sim> for NoWait {
    type Block<'a> = ();
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), _: CpuRange, _: usize) -> Self {
        NoWait
    }
    fn new_page() {}
    fn begin(&self) {}
    fn note(&self, _: &(), _: Frame, _: &()) {}
    fn enter(&self) {}
    fn reverse(&self) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {}
}

/// `vm`'s policies, but with [`Neighbours`].
pub struct NeighboursLock;

impl Policies<Sim> for NeighboursLock {
    type Invalidation = <Best as Policies<Sim>>::Invalidation;
    type Swap = <Best as Policies<Sim>>::Swap;
    type Locking = <Best as Policies<Sim>>::Locking;
    type Regions = vm::policy::NoRegions;
    type Queues = vm::policy::NoQueues;
    type PvLocks = Neighbours;
    type PvChunks = vm::policy::PvInTables;
}

/// Locks of PV lists for pages with even and with odd frames; who removes a range takes the lock that he
/// has for that of the next page, whichever that is.
pub struct Neighbours(PvListLocks<Sim>);

// SAFETY: none; it breaks the promise, and that is what has to be found.
unsafe impl PvLocking<Sim> for Neighbours {
    type Config = ();
    type Held<'a> = PvListHeld<'a, Sim>;

    fn new(_: &(), cpus: CpuRange, frames: usize) -> Self {
        Neighbours(PvListLocks::new(&ListLocks::Hashed, cpus, frames))
    }
    fn is_per_block(&self) -> bool {
        true
    }
    fn is_same(&self, _: Frame, _: Frame) -> bool {
        true
    }
    fn lock<'a>(&'a self, frame: Frame, own: &'a PvLock<Sim>) -> Self::Held<'a> {
        // The locks are of 2 MiB each.
        self.0.lock(Frame(frame.0 % 2 * 512), own)
    }
}

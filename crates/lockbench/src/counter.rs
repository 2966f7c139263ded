//! Counters: one unit reserved and released, and the addition it replaces.

use super::subject::Subject;
use machine::{Atomic, AtomicInt, Atomics, CpuRange, Machine};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The number of units; far more than threads can have reserved.
const LIMIT: u64 = 1 << 20;

/// `sync`'s per-CPU counter with an exact limit: reserve, release.
pub struct Limited<M: Machine> {
    counter: sync::counter::Limited<M>,
    refused: AtomicBool,
}

impl<M: Machine> Subject for Limited<M> {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(cpus: CpuRange) -> Self {
        Limited {
            counter: sync::counter::Limited::new(cpus, LIMIT),
            refused: AtomicBool::new(false),
        }
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        if self.counter.reserve(1) {
            section();
            self.counter.release(1);
        } else {
            self.refused.store(true, Relaxed);
        }
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        match (self.counter.used(), self.refused.load(Relaxed)) {
            (0, false) => Ok(()),
            (0, true) => Err("a reservation was refused while units were free".into()),
            (used, _) => Err(format!("{used} units are still reserved")),
        }
    }
}

/// One shared counter: a single addition.
pub struct FetchAdd<M: Atomics>(M::AtomicU64);

impl<M: Machine> Subject for FetchAdd<M> {
    const EXCLUSIVE: bool = false;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        FetchAdd(Atomic::new(0))
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        self.0.fetch_add(1, Relaxed);
        section();
    }

    fn verify(&self, operations: u64) -> Result<(), String> {
        let counted = self.0.load(Relaxed);
        if counted == operations {
            Ok(())
        } else {
            Err(format!("{counted} counted after {operations} additions"))
        }
    }
}

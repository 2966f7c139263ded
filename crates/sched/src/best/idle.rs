//! How a CPU goes idle without forgetting a task.
//!
//! A CPU that has found its queue empty says that it is idle and then looks at the count of waiting
//! tasks; one that enqueues a task raises the count and then looks whether the CPU is idle. Each
//! has a fence between its write and its read, so one of them sees the other (Dekker's pattern).

use alloc::boxed::Box;
use core::ops::Range;
use machine::{Atomic, CpuRange, Machine, Ordering};
use sync::Padded;

/// The CPU runs a task, or looks for one.
const BUSY: u32 = 0;
/// The CPU waits for an interrupt, or is about to.
const IDLE: u32 = 1;
/// As IDLE; the CPU that has set this interrupts the idle one.
const CLAIMED: u32 = 2;

/// Which CPUs are idle: a flag for each, on lines of its own. CPUs that look for an idle one only
/// read, until they have found one.
pub struct Idle<M: Machine> {
    flags: Box<[Padded<M::AtomicU32>]>,
}

impl<M: Machine> Idle<M> {
    /// None of these CPUs is idle.
    pub fn new(cpus: CpuRange) -> Self {
        let flag = |_| Padded(M::AtomicU32::new(BUSY));
        let flags: Box<[_]> = (0..cpus.len()).map(flag).collect();
        M::label(flags.as_ptr().cast(), size_of_val(&*flags), "idle flag");
        Idle { flags }
    }

    /// The calling CPU goes idle, unless there is work: it asks for [`Waiting::get`] then. Returns
    /// true if it may wait.
    pub fn begin(&self, cpu: usize, has_work: impl FnOnce() -> bool) -> bool {
        // A fence follows: pairs with the one in `Waiting::announce`.
        self.flags[cpu].publish(IDLE);
        let has_work = has_work();
        if has_work {
            self.end(cpu);
        }
        !has_work
    }

    /// The calling CPU has a task, or is about to look for one.
    pub fn end(&self, cpu: usize) {
        if self.flags[cpu].load(Ordering::Relaxed) != BUSY {
            self.flags[cpu].store(BUSY, Ordering::Relaxed);
        }
    }

    /// Makes an idle CPU the caller's to interrupt; `false` if it is not idle, or another's.
    pub fn claim(&self, cpu: usize) -> bool {
        // Relaxed: the flag passes on nothing but itself; tasks that a claimant hands over go
        // through the queue's lock.
        let flag = &self.flags[cpu];
        flag.load(Ordering::Relaxed) == IDLE
            && flag
                .compare_exchange(IDLE, CLAIMED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The other CPUs, nearest first.
    pub fn near(&self, cpu: usize) -> impl Iterator<Item = usize> + use<M> {
        self.at(cpu, 1..self.flags.len().next_power_of_two())
    }

    /// The other CPUs of an aligned group of `size`, a power of two; the caller's own group is
    /// number 0 to it.
    pub fn group(
        &self,
        cpu: usize,
        number: usize,
        size: usize,
    ) -> impl Iterator<Item = usize> + use<M> {
        self.at(cpu, (number * size).max(1)..(number + 1) * size)
    }

    /// The CPUs at these distances, if they exist.
    fn at(&self, cpu: usize, distances: Range<usize>) -> impl Iterator<Item = usize> + use<M> {
        let count = self.flags.len();
        distances.map(move |d| cpu ^ d).filter(move |&c| c < count)
    }
}

/// How many tasks wait in a queue. Written under the queue's lock, read by anyone as a hint.
pub struct Waiting<M: Machine>(M::AtomicU32);

impl<M: Machine> Default for Waiting<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Waiting<M> {
    /// None.
    pub fn new() -> Self {
        Waiting(M::AtomicU32::new(0))
    }

    /// How many there were a moment ago.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, for a CPU that will look at its queue.
    pub fn add(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    /// One more, for another CPU, which may be about to wait. The caller then tries
    /// [`Idle::claim`], and interrupts the CPU if it succeeds.
    pub fn announce(&self) {
        // A fence follows: pairs with the one in `Idle::begin`.
        self.0.publish(self.get() + 1);
    }

    /// One less.
    pub fn remove(&self) {
        self.0.store(self.get() - 1, Ordering::Relaxed);
    }
}

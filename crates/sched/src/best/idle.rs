//! How a CPU goes idle without forgetting a task.
//!
//! A CPU that has found its queue empty sets its idle flag and then reads the count of waiting
//! tasks. A CPU that enqueues a task there raises the count and then reads the flag. Each has a
//! fence between its write and its read, so at least one of them sees the other's write (Dekker's
//! pattern).

use alloc::boxed::Box;
use core::ops::Range;
use machine::{Atomic, CpuRange, Machine, Ordering};
use sync::Padded;

/// The CPU runs a task, or looks for one.
const BUSY: u32 = 0;
/// The CPU waits for an interrupt, or is about to.
const IDLE: u32 = 1;
/// The CPU is idle, and the CPU that has set this interrupts it.
const CLAIMED: u32 = 2;

/// Which CPUs are idle: a flag per CPU, each on cache lines of its own. A CPU that looks for an
/// idle one only reads until it has found one.
pub struct Idle<M: Machine> {
    flags: Box<[Padded<M::AtomicU32>]>,
}

impl<M: Machine> Idle<M> {
    /// Flags for these CPUs; none is idle.
    pub fn new(cpus: CpuRange) -> Self {
        let flag = |_| Padded(M::AtomicU32::new(BUSY));
        let flags: Box<[_]> = (0..cpus.len()).map(flag).collect();
        M::label(flags.as_ptr().cast(), size_of_val(&*flags), "idle flag");
        Idle { flags }
    }

    /// Marks the calling CPU idle, then asks `has_work`, which reads [`Waiting::get`]. Returns true
    /// if there is no work, so that the CPU may wait.
    pub fn begin(&self, cpu: usize, has_work: impl FnOnce() -> bool) -> bool {
        // A fence follows: pairs with the one in `Waiting::announce`.
        self.flags[cpu].publish(IDLE);
        let has_work = has_work();
        if has_work {
            self.end(cpu);
        }
        !has_work
    }

    /// Marks the calling CPU busy: it has a task, or is about to look for one.
    pub fn end(&self, cpu: usize) {
        if self.flags[cpu].load(Ordering::Relaxed) != BUSY {
            self.flags[cpu].store(BUSY, Ordering::Relaxed);
        }
    }

    /// Claims an idle CPU, which the caller then interrupts. Returns false if it is not idle, or
    /// another CPU has claimed it.
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

    /// The other CPUs of an aligned group of `size` CPUs, a power of two. Groups are numbered by
    /// their distance from `cpu`, whose own group is number 0.
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

/// The number of tasks that wait in a queue. Written under the queue's lock, read by anyone as a
/// hint.
pub struct Waiting<M: Machine>(M::AtomicU32);

impl<M: Machine> Default for Waiting<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Waiting<M> {
    /// A count of 0.
    pub fn new() -> Self {
        Waiting(M::AtomicU32::new(0))
    }

    /// The number of waiting tasks a moment ago.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more task, of a CPU that will look at its queue by itself.
    pub fn add(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    /// Counts one more task, of another CPU, which may be about to wait. The caller then tries
    /// [`Idle::claim`], and interrupts the CPU if it succeeds.
    pub fn announce(&self) {
        // A fence follows: pairs with the one in `Idle::begin`.
        self.0.publish(self.get() + 1);
    }

    /// Counts one task less.
    pub fn remove(&self) {
        self.0.store(self.get() - 1, Ordering::Relaxed);
    }
}

//! How waiting tasks migrate to CPUs that have fewer.
//!
//! An idle CPU steals tasks; a busy one gives some away at its tick. No CPU holds the locks of two
//! queues at the same time, and a thief does not wait for a lock: it goes on to the next neighbour.

use super::{Best, Bounds, NEAR};
use crate::TaskRef;
use machine::Contexts;

/// The number of flags that a busy CPU reads at a tick to find idle CPUs. A power of two.
const FAR: usize = 128;

impl<M: Contexts, B: Bounds> Best<M, B> {
    /// Steals a waiting task from a neighbour for the calling CPU, which has none.
    pub(super) fn steal(&self, cpu: usize, now: u64) -> Option<TaskRef<M, Self>> {
        let near = self.idle.near(cpu).take(NEAR);
        let mut busy = near.filter(|&other| self.queues.of(other).is_crowded());
        let (task, lag) = busy.find_map(|other| self.queues.of(other).take(cpu))?;
        self.queues.of(cpu).adopt(lag, now);
        Some(task)
    }

    /// A neighbour in whose queue a task waits that may run on `cpu`.
    pub(super) fn victim(&self, cpu: usize) -> Option<usize> {
        let mut near = self.idle.near(cpu).take(NEAR);
        near.find(|&other| {
            let queue = self.queues.of(other);
            queue.is_crowded() && queue.has_for(cpu)
        })
    }

    /// Gives a waiting task of the calling CPU to each idle CPU in a group of [`FAR`]; if none is
    /// idle, one task to a CPU with fewer. The group is chosen at random, so on a larger machine
    /// the ticks reach every group in the end. Returns a CPU to interrupt.
    pub(super) fn balance(&self, cpu: usize, now: u64) -> Option<usize> {
        let own = self.queues.of(cpu);
        let mut given = false;
        let groups = self.queues.cpus().len().next_power_of_two().div_ceil(FAR) as u64;
        let group = (dice(cpu, now) >> 16) % groups;
        for other in self.idle.group(cpu, group as usize, FAR) {
            if !own.is_crowded() {
                return None;
            }
            if own.has_for(other) && self.idle.claim(other) {
                self.give(cpu, other, now);
                M::kick(other);
                given = true;
            }
        }
        let other = self.shorter(cpu, now).filter(|_| !given)?;
        self.give(cpu, other, now)
    }

    /// Moves a task that waits at `cpu` to `other`. Returns `other` if it has to be interrupted.
    fn give(&self, cpu: usize, other: usize, now: u64) -> Option<usize> {
        let (task, lag) = self.queues.of(cpu).take(other)?;
        self.enqueue(other, cpu, task, lag, now)
    }

    /// A CPU chosen at random, if fewer tasks wait there.
    fn shorter(&self, cpu: usize, now: u64) -> Option<usize> {
        let others = self.queues.cpus().len() as u64 - 1;
        let dice = dice(cpu, now);
        let other = (dice >> 32).checked_rem(others)?;
        let other = self.idle.near(cpu).nth(other as usize)?;
        let (own, its) = (self.queues.of(cpu), self.queues.of(other));
        // A difference of one counts only one time in four: then the tasks take turns on the more
        // crowded CPU.
        let enough = if dice.is_multiple_of(4) { 1 } else { 2 };
        (own.waiting() >= its.waiting() + enough).then_some(other)
    }
}

/// A pseudo-random number for each CPU and time.
fn dice(cpu: usize, now: u64) -> u64 {
    scramble(now.wrapping_add((cpu as u64) << 48))
}

/// The finalizer of SplitMix64: neighbouring numbers become unrelated ones.
fn scramble(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

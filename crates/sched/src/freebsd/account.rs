//! The accounts of tasks: charges by the statistics clock, and inheritance (`sched_clock`,
//! `sched_wakeup`, `sched_fork`).

use super::interact::{HZ, History, MIN_SLICE, SHIFT, STATHZ, TICK, Usage, slice};
use super::{Task, Ule, ticks};
use machine::{Atomic, Contexts, Ordering};

/// Nanoseconds between two ticks of the statistics clock.
const STAT_TICK: u64 = 1_000_000_000 / STATHZ as u64;

impl<M: Contexts> Ule<M> {
    /// Restarts the clock of `cpu`, which continues with a task, if it stood still while the CPU
    /// was idle. The CPUs' clocks do not tick at the same time.
    pub(super) fn start_clock(&self, cpu: usize, now: u64) {
        let next_tick = &self.cpus[cpu].next_tick;
        if next_tick.load(Ordering::Relaxed) <= now {
            let phase = STAT_TICK * cpu as u64 / self.cpus.len() as u64;
            let next = (now + STAT_TICK - phase) / STAT_TICK * STAT_TICK + phase;
            next_tick.store(next, Ordering::Relaxed);
        }
    }

    /// Ticks of the statistics clock of `cpu`, if any are due. Returns a CPU to interrupt.
    pub(super) fn clock(&self, cpu: usize, current: Task<M>, now: u64) -> Option<usize> {
        let tdq = &self.cpus[cpu];
        let mut next = tdq.next_tick.load(Ordering::Relaxed);
        let mut kick = None;
        while next <= now {
            next += STAT_TICK;
            if cpu == 0 {
                kick = kick.or_else(|| self.balance_tick());
            }
            let lock = tdq.lock.lock();
            self.charge(cpu, current, now);
            // The task returns to user mode.
            current.entry().to_user();
            tdq.set_best();
            drop(lock);
        }
        tdq.next_tick.store(next, Ordering::Relaxed);
        kick
    }

    /// The current task has used the CPU for a tick of the statistics clock (`sched_clock`).
    fn charge(&self, cpu: usize, current: Task<M>, now: u64) {
        let tdq = &self.cpus[cpu];
        tdq.tick();
        let entry = current.entry();
        entry.count(ticks(now), true);
        let History { slept, ran } = entry.history();
        let ran = ran + TICK;
        entry.set_history(History { slept, ran }.limited());
        entry.recompute();
        let used = entry.slice() + 1;
        let over = used >= slice(tdq.load());
        entry.set_slice(if over { 0 } else { used });
        if over {
            tdq.wanted.store(1, Ordering::Relaxed);
            tdq.slice_over.store(1, Ordering::Relaxed);
        }
    }

    /// The effect of a sleep on the task that wakes (`sched_wakeup`).
    pub(super) fn woken(&self, task: Task<M>, now: u64) {
        let entry = task.entry();
        let slept = ticks(now).wrapping_sub(entry.slept_at());
        if slept > 0 {
            let History { slept: before, ran } = entry.history();
            // The sum does not overflow: a sleep beyond the limit is cut.
            let slept = before + (slept.min(60 * HZ) << SHIFT);
            entry.set_history(History { slept, ran }.limited());
            entry.count(ticks(now), false);
        }
        entry.set_slice(0);
        entry.recompute();
    }

    /// Gives a child some of its parent's history, and charges the parent a tick.
    pub(super) fn fork(&self, task: Task<M>, parent: Option<Task<M>>, now: u64) {
        let cpu = task.cpu();
        let tick = ticks(now);
        let tdq = &self.cpus[cpu];
        let Some(parent) = &parent else {
            let history = History { slept: 0, ran: 0 };
            let usage = Usage {
                ran: 0,
                first: tick,
                last: tick,
            };
            return task.entry().begin(cpu, 0, history, usage, tick);
        };
        let parent = parent.entry();
        let lock = tdq.lock.lock();
        parent.count(tick, true);
        let (history, usage) = (parent.history(), parent.usage());
        let used = slice(tdq.load()) - MIN_SLICE;
        let ran = history.ran + TICK;
        parent.set_history(History { ran, ..history }.limited());
        parent.recompute();
        drop(lock);
        task.entry()
            .begin(cpu, used, history.inherited(), usage, tick);
    }
}

//! Which CPU a task goes to (`sched_pickcpu`, `cpu_search`).
//!
//! FreeBSD searches a tree of groups of CPUs that share caches. The machine's CPUs are one group,
//! with a common last-level cache, so a search looks at all of them.

use super::interact::MIN_IDLE;
use super::{Task, Ule, ticks};
use machine::{Contexts, CpuSet};

/// Deducted from the load of the preferred CPU (`cs_prefer` in `cpu_search`); a task counts 256.
const PREFERRED: i64 = 64;
/// Loads are compared up to a random number below this (`sched_random() % 32` in `cpu_search`).
const NOISE: i64 = 32;
/// Ticks during which a task's data is still in the caches that its CPU has for itself:
/// `SCHED_AFFINITY` of `CG_SHARE_L2` (2) with `affinity` 1.
const WARM: u32 = 2;

impl<M: Contexts> Ule<M> {
    /// The CPU with the least load among those whose best priority is worse than `priority`, and
    /// whose load is at most `most` (`sched_lowest`). `prefer` is the task's last one.
    pub(super) fn lowest(
        &self,
        here: usize,
        among: impl Fn(usize) -> bool,
        priority: Option<u32>,
        most: u32,
        prefer: usize,
    ) -> Option<usize> {
        let fits = |&cpu: &usize| {
            let tdq = &self.cpus[cpu];
            among(cpu) && tdq.load() <= most && priority.is_none_or(|pri| tdq.best() > pri)
        };
        let cpus = (0..self.cpus.len()).rev().filter(fits);
        cpus.min_by_key(|&cpu| {
            let preferred = if cpu == prefer { PREFERRED } else { 0 };
            i64::from(self.cpus[cpu].load()) * 256 - preferred - self.noise(here)
        })
    }

    /// The CPU with the highest load, at least `least`, that has a task to give (`sched_highest`).
    pub(super) fn highest(&self, here: usize, without: &CpuSet, least: u32) -> Option<usize> {
        let fits = |&cpu: &usize| {
            let tdq = &self.cpus[cpu];
            !without.contains(cpu) && tdq.load() >= least && tdq.transferable() > 0
        };
        let cpus = (0..self.cpus.len()).rev().filter(fits);
        cpus.max_by_key(|&cpu| i64::from(self.cpus[cpu].load()) * 256 - self.noise(here))
    }

    fn noise(&self, here: usize) -> i64 {
        i64::from(self.cpus[here].random()) % NOISE
    }

    /// The CPU for a task that becomes ready, called on CPU `here`: its last one if that is idle
    /// and its caches are warm; else the one with the least load of those where it could run now,
    /// or of all. If that one is busy too, `here` if its load is not higher.
    pub(super) fn pick(&self, task: Task<M>, here: usize, now: u64) -> usize {
        let entry = task.entry();
        let last = entry.cpu();
        let warm = ticks(now).wrapping_sub(entry.left_at()) < WARM;
        if warm && self.cpus[last].best() >= MIN_IDLE {
            return last;
        }
        let priority = entry.priority();
        let lowest = |priority| self.lowest(here, |_| true, priority, u32::MAX, last);
        let cpu = lowest(Some(priority)).or_else(|| lowest(None));
        let cpu = cpu.unwrap_or(last);
        let (tdq, own) = (&self.cpus[cpu], &self.cpus[here]);
        if own.best() > priority && tdq.best() < MIN_IDLE && own.load() <= tdq.load() + 1 {
            return here;
        }
        cpu
    }
}

//! Virtual time: the task that has run least comes first. (Linux 3.0, kernel/sched_fair.c; as in
//! 2.6.39.)
//!
//! A task's virtual time (`vruntime`) is the time it has run; all have the weight of nice 0. Each
//! CPU has a minimum (`min_vruntime`) that never falls, near the least among its tasks. Times are
//! nanoseconds, and signed: a task between two CPUs counts from its CPU's minimum.

use core::cmp::Ordering;

/// `sysctl_sched_latency`: in this time each task of a CPU runs once.
const LATENCY: u64 = 6_000_000;
/// `sysctl_sched_min_granularity`: the shortest share of the latency that a task gets.
const MIN_GRANULARITY: u64 = 750_000;
/// `sysctl_sched_wakeup_granularity`: how much more virtual time than a woken task the running one
/// may have.
const WAKEUP_GRANULARITY: u64 = 1_000_000;
/// `sched_nr_latency`: [`LATENCY`] / [`MIN_GRANULARITY`].
const NR_LATENCY: u64 = 8;
/// `sysctl_sched_migration_cost`: a task that has run within this time has its data in its CPU's
/// caches; and a CPU that is idle for less does not look for tasks.
pub(super) const MIGRATION_COST: u64 = 500_000;
/// `imbalance_pct` of `SD_MC_INIT`: loads that differ by less than a quarter are equal.
const IMBALANCE: u64 = 125;

/// The parameters of a machine, scaled by its size (`update_sysctl`, `SCHED_TUNABLESCALING_LOG`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunables {
    latency: u64,
    min_granularity: u64,
    wakeup_granularity: u64,
}

impl Tunables {
    /// The parameters of a machine of this many CPUs: larger by the factor 1 + log2 of the CPUs,
    /// counted up to 8.
    pub(super) fn of(cpus: usize) -> Self {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Tunables {
            latency: LATENCY * factor,
            min_granularity: MIN_GRANULARITY * factor,
            wakeup_granularity: WAKEUP_GRANULARITY * factor,
        }
    }

    /// The time for which a task runs among `tasks` (`sched_slice`, `__sched_period`).
    pub(super) fn slice(self, tasks: u64) -> u64 {
        let tasks = tasks.max(1);
        if tasks > NR_LATENCY {
            self.min_granularity
        } else {
            self.latency / tasks
        }
    }

    /// The virtual time of a task that comes to a CPU with this minimum. One that has slept
    /// (`others` is `None`) gets at most half the latency less than the minimum; a new one gets its
    /// slice among the others more (`place_entity`, `GENTLE_FAIR_SLEEPERS`, `START_DEBIT`).
    pub(super) fn placed(self, vruntime: i64, minimum: i64, others: Option<u64>) -> i64 {
        vruntime.max(match others {
            Some(others) => minimum + self.slice(others + 1) as i64,
            None => minimum - (self.latency / 2) as i64,
        })
    }

    /// Returns true if a woken task preempts the current one (`wakeup_preempt_entity`).
    pub(super) fn preempts(self, current: i64, woken: i64) -> bool {
        current - woken > self.wakeup_granularity as i64
    }

    /// Returns true if the next task preempts the current one, which is one of `tasks` and has run
    /// for `ran` (`check_preempt_tick`).
    pub(super) fn is_over(self, ran: u64, tasks: u64, current: i64, next: i64) -> bool {
        let slice = self.slice(tasks);
        ran > slice || ran >= self.min_granularity && current - next > slice as i64
    }

    /// Returns true if the task that yields goes on all the same, because its virtual time is so
    /// much less that skipping it would be unfair (`pick_next_entity`, `yield_task_fair`).
    pub(super) fn goes_on(self, yields: i64, next: i64) -> bool {
        match yields.cmp(&next) {
            Ordering::Less => self.preempts(next, yields),
            _ => false,
        }
    }
}

/// A CPU's average idle time after it has been idle for `idle` (`update_avg`).
pub(super) fn average_idle(average: u64, idle: u64) -> u64 {
    if idle > 2 * MIGRATION_COST {
        2 * MIGRATION_COST
    } else {
        average.wrapping_add_signed((idle as i64 - average as i64) >> 3)
    }
}

/// Returns true if a task is better woken on the waker's CPU than on its last one, by the tasks of
/// both (`wake_affine`).
pub(super) fn is_affine(wakers: u64, last: u64) -> bool {
    // Half the imbalance is allowed. The waker's CPU would have the task in addition.
    wakers == 0 || 100 * (wakers + 1) <= (100 + (IMBALANCE - 100) / 2) * last
}

/// The number of tasks that a CPU with `own` takes from one with `busiest`, of `all` on `cpus` CPUs
/// (`find_busiest_group`, `calculate_imbalance`, `balance_tasks`).
pub(super) fn pulled(own: u64, busiest: u64, all: u64, cpus: u64) -> u64 {
    if busiest <= 1 || 100 * busiest <= IMBALANCE * own || own * cpus >= all {
        return 0;
    }
    // Neither CPU passes the average; a task moves if at least half of it is due. The counts are of
    // different moments, so even the busiest may be below the average.
    let wanted = (busiest * cpus).saturating_sub(all).min(all - own * cpus);
    // `fix_small_imbalance`: one is moved in any case.
    ((wanted + cpus / 2) / cpus).clamp(1, busiest - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn parameters_grow_with_the_machine() {
        assert_eq!(Tunables::of(1).latency, 6 * MS);
        assert_eq!(Tunables::of(4).latency, 18 * MS);
        assert_eq!(Tunables::of(8), Tunables::of(1000));
        assert_eq!(Tunables::of(64).wakeup_granularity, 4 * MS);
        assert_eq!(Tunables::of(64).min_granularity, 3 * MS);
    }

    #[test]
    fn slices_share_the_latency() {
        let one = Tunables::of(1);
        assert_eq!(
            [1, 2, 8, 9, 100].map(|n| one.slice(n)),
            [6000, 3000, 750, 750, 750].map(|us| us * 1000)
        );
    }

    #[test]
    fn a_sleeper_gets_a_bounded_credit() {
        let one = Tunables::of(1);
        assert_eq!(one.placed(0, 100 * MS as i64, None), 97 * MS as i64);
        assert_eq!(
            one.placed(99 * MS as i64, 100 * MS as i64, None),
            99 * MS as i64
        );
        assert_eq!(one.placed(0, 100 * MS as i64, Some(1)), 103 * MS as i64);
        assert!(one.preempts(100 * MS as i64, 97 * MS as i64));
        assert!(!one.preempts(98 * MS as i64, 97 * MS as i64));
    }

    #[test]
    fn a_slice_ends() {
        let one = Tunables::of(1);
        assert!(one.is_over(3 * MS + 1, 2, 0, 0));
        assert!(!one.is_over(2 * MS, 2, 0, 0));
        assert!(one.is_over(2 * MS, 2, 4 * MS as i64, 0), "far ahead");
        assert!(!one.is_over(MS / 2, 2, 4 * MS as i64, 0), "just begun");
        assert!(one.goes_on(0, 2 * MS as i64));
        assert!(!one.goes_on(0, MS as i64));
        assert!(!one.goes_on(MS as i64, 0));
    }

    #[test]
    fn wake_ups_follow_the_load() {
        assert!(is_affine(0, 0));
        assert!(!is_affine(1, 1));
        assert!(is_affine(1, 2));
        assert!(!is_affine(2, 2));
    }

    #[test]
    fn tasks_move_to_the_average() {
        assert_eq!(pulled(0, 1, 4, 4), 0, "it runs");
        assert_eq!(pulled(0, 2, 2, 4), 1);
        assert_eq!(pulled(0, 8, 8, 4), 2);
        assert_eq!(pulled(1, 2, 3, 2), 1);
        assert_eq!(pulled(4, 5, 9, 2), 0, "as good as equal");
        assert_eq!(pulled(0, 2, 10, 4), 1, "others have grown meanwhile");
        assert_eq!(pulled(2, 3, 6, 3), 0, "not below the average");
    }

    #[test]
    fn idle_time_is_averaged() {
        assert_eq!(average_idle(MS, 3 * MS), MS);
        assert_eq!(average_idle(800_000, 0), 700_000);
    }
}

//! Priorities: a task that sleeps much more than it runs is interactive, the others are ordered by
//! how much they use the CPU. (FreeBSD 12, sys/kern/sched_ule.c; sys/sys/priority.h.)
//!
//! Time is in ticks of 1/hz (1 ms), shifted by [`SHIFT`] bits where fractions count.

/// Ticks a second (`hz`).
pub(super) const HZ: u32 = 1000;
/// Ticks of the statistics clock a second (`stathz`).
pub(super) const STATHZ: u32 = 127;
/// `SCHED_TICK_SHIFT`.
pub(super) const SHIFT: u32 = 10;
/// Shifted ticks of 1/hz in a tick of the statistics clock (`tickincr`).
pub(super) const TICK: u32 = (HZ << SHIFT) / STATHZ;

/// The most sleep and run time that is remembered (`SCHED_SLP_RUN_MAX`): 5 s.
const REMEMBERED: u32 = (HZ * 5) << SHIFT;
/// The most that a child inherits (`SCHED_SLP_RUN_FORK`): 0.5 s.
const INHERITED: u32 = (HZ / 2) << SHIFT;
/// `SCHED_INTERACT_HALF`: the score of a task that sleeps as long as it runs; the worst is twice
/// that.
const HALF: u32 = 50;
/// Below this score a task is interactive (`SCHED_INTERACT_THRESH`).
const THRESHOLD: u32 = 30;

/// `PRI_MIN_TIMESHARE` and `PRI_MIN_INTERACT`: the best priority in user mode. Smaller is better.
const MIN_INTERACT: u32 = 120;
/// `PRI_INTERACT_RANGE`: half of the time-sharing priorities (104) that nice values (40) leave.
const INTERACT_RANGE: u32 = (104 - 40) / 2;
/// `PRI_MAX_INTERACT`.
pub(super) const MAX_INTERACT: u32 = MIN_INTERACT + INTERACT_RANGE - 1;
/// `PRI_MIN_BATCH`: the best priority of a task that is not interactive, if it were nice.
pub(super) const MIN_BATCH: u32 = MAX_INTERACT + 1;
/// `PRI_MAX_TIMESHARE` and `PRI_MAX_BATCH`.
pub(super) const MAX_BATCH: u32 = 223;
/// `PRI_BATCH_RANGE`.
pub(super) const BATCH_RANGE: u32 = MAX_BATCH - MIN_BATCH + 1;
/// `PRI_MIN_IDLE`.
pub(super) const MIN_IDLE: u32 = 224;
/// `PRI_MAX_IDLE`: the idle thread's.
pub(super) const IDLE: u32 = 255;
/// `SCHED_PRI_MIN`: tasks that are not nice begin here.
const BATCH: u32 = MIN_BATCH + 20;
/// `SCHED_PRI_RANGE`: priorities by use of the CPU.
const USE_RANGE: u32 = MAX_BATCH - 20 - BATCH + 1;
/// A task of this priority or a better one preempts any worse one (`preempt_thresh`,
/// `PRI_MIN_KERN`).
const PREEMPT: u32 = 80;

/// The times that a task has slept and run recently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct History {
    /// `ts_slptime`.
    pub(super) slept: u32,
    /// `ts_runtime`.
    pub(super) ran: u32,
}

impl History {
    /// The interactivity score, from 0 (always asleep) to 100 (`sched_interact_score`).
    pub(super) fn score(self) -> u32 {
        // The threshold is below half, so it does not matter by how much it is missed.
        if self.ran >= self.slept {
            return HALF;
        }
        self.ran / (self.slept / HALF).max(1)
    }

    /// Forgets the distant past (`sched_interact_update`).
    #[must_use]
    pub(super) fn limited(self) -> Self {
        let History { slept, ran } = self;
        let sum = slept + ran;
        if sum < REMEMBERED {
            self
        } else if sum > 2 * REMEMBERED {
            let (slept, ran) = if ran > slept {
                (1, REMEMBERED)
            } else {
                (REMEMBERED, 1)
            };
            History { slept, ran }
        } else if sum > REMEMBERED / 5 * 6 {
            History {
                slept: slept / 2,
                ran: ran / 2,
            }
        } else {
            History {
                slept: slept / 5 * 4,
                ran: ran / 5 * 4,
            }
        }
    }

    /// The history that a child inherits (`sched_interact_fork`).
    #[must_use]
    pub(super) fn inherited(self) -> Self {
        let ratio = ((self.slept + self.ran) / INHERITED).max(1);
        History {
            slept: self.slept / ratio,
            ran: self.ran / ratio,
        }
    }
}

/// The part of the last ten seconds that a task has run (`ts_ticks`, `ts_ftick`, `ts_ltick`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    /// Ticks that it has run, shifted.
    pub(super) ran: u32,
    /// When counting began.
    pub(super) first: u32,
    /// When it was last counted.
    pub(super) last: u32,
}

impl Usage {
    /// `SCHED_TICK_TARG`: ten seconds.
    const SPAN: u32 = HZ * 10;
    /// `SCHED_TICK_MAX`: a second more.
    const MAX: u32 = Self::SPAN + HZ;

    /// Counts the time until tick `now`; `ran` says if the task ran in it (`sched_pctcpu_update`).
    #[must_use]
    pub(super) fn counted(self, now: u32, ran: bool) -> Self {
        let mut usage = self;
        if now.wrapping_sub(self.last) >= Self::SPAN {
            usage.ran = 0;
            usage.first = now.wrapping_sub(Self::SPAN);
        } else if now.wrapping_sub(self.first) >= Self::MAX {
            let begin = now.wrapping_sub(Self::SPAN);
            let length = self.last.wrapping_sub(self.first).max(1);
            usage.ran = self.ran / length * self.last.wrapping_sub(begin);
            usage.first = begin;
        }
        if ran {
            usage.ran = usage.ran.wrapping_add(now.wrapping_sub(self.last) << SHIFT);
        }
        usage.last = now;
        usage
    }

    /// By how many steps this use worsens the priority (`SCHED_PRI_TICKS`).
    fn steps(self) -> u32 {
        let total = self.last.wrapping_sub(self.first).max(HZ);
        ((self.ran >> SHIFT) / total.div_ceil(USE_RANGE)).min(USE_RANGE - 1)
    }
}

/// The priority in user mode (`sched_priority`; no task is nice).
pub(super) fn priority(history: History, usage: Usage) -> u32 {
    let score = history.score();
    if score < THRESHOLD {
        MIN_INTERACT + INTERACT_RANGE / THRESHOLD * score
    } else {
        BATCH + usage.steps()
    }
}

/// Returns true if a ready task should preempt one of the priority `current`; `remote` if that runs
/// on another CPU than the caller's (`sched_shouldpreempt`).
pub(super) fn should_preempt(priority: u32, current: u32, remote: bool) -> bool {
    if priority >= current {
        return false;
    }
    current >= MIN_IDLE
        || priority <= PREEMPT
        || remote && priority <= MAX_INTERACT && current > MAX_INTERACT
}

/// The slice, in ticks of the statistics clock, of a task on a CPU with this load, which counts the
/// task itself (`tdq_slice`): 94 ms for one of two tasks, shorter for one of more, but at least 16
/// ms.
pub(super) fn slice(load: u32) -> u32 {
    /// `sched_slice`: `stathz` / `SCHED_SLICE_DEFAULT_DIVISOR`.
    const SLICE: u32 = STATHZ / 10;
    match load.saturating_sub(1) {
        others @ ..MIN_DIVISOR => SLICE / others.max(1),
        _ => MIN_SLICE,
    }
}

/// `SCHED_SLICE_MIN_DIVISOR`.
const MIN_DIVISOR: u32 = 6;
/// `sched_slice_min`.
pub(super) const MIN_SLICE: u32 = STATHZ / 10 / MIN_DIVISOR;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u32 = HZ << SHIFT;

    fn history(slept: u32, ran: u32) -> History {
        History { slept, ran }
    }

    #[test]
    fn score_is_the_ratio() {
        assert_eq!(history(0, 0).score(), 50);
        assert_eq!(history(SECOND, 0).score(), 0);
        assert_eq!(history(SECOND, SECOND).score(), 50);
        assert_eq!(history(0, SECOND).score(), 50);
        assert_eq!(history(2 * SECOND, SECOND).score(), 25);
        assert_eq!(history(4 * SECOND, SECOND / 10).score(), 1);
        // Interactive below 30: it sleeps 5/3 as long as it runs.
        assert!(history(165 * SECOND / 100, SECOND).score() >= 30);
        assert!(history(175 * SECOND / 100, SECOND).score() < 30);
    }

    #[test]
    fn history_has_limits() {
        assert_eq!(history(SECOND, SECOND).limited(), history(SECOND, SECOND));
        let halved = history(4 * SECOND, 3 * SECOND).limited();
        assert_eq!(halved, history(2 * SECOND, 3 * SECOND / 2));
        let shrunk = history(3 * SECOND, 5 * SECOND / 2).limited();
        assert_eq!(shrunk, history(3 * SECOND / 5 * 4, SECOND / 2 * 4));
        assert_eq!(
            history(9 * SECOND, 2 * SECOND).limited(),
            history(5 * SECOND, 1)
        );
        assert_eq!(history(0, 11 * SECOND).limited(), history(1, 5 * SECOND));
        let child = history(2 * SECOND, SECOND).inherited();
        assert_eq!(child, history(2 * SECOND / 6, SECOND / 6));
        assert_eq!(history(5, 7).inherited(), history(5, 7));
    }

    #[test]
    fn usage_covers_ten_seconds() {
        let mut usage = Usage {
            ran: 0,
            first: 0,
            last: 0,
        };
        for now in (0..60_000).step_by(8) {
            usage = usage.counted(now, true);
        }
        assert_eq!(usage.steps(), USE_RANGE - 1, "a hog");
        usage = usage.counted(usage.last + 5_000, false);
        assert!((8..=17).contains(&usage.steps()), "half: {}", usage.steps());
        assert_eq!(usage.counted(usage.last + 10_000, false).steps(), 0);
    }

    #[test]
    fn priorities_keep_their_ranges() {
        let fresh = Usage {
            ran: 0,
            first: 0,
            last: 0,
        };
        assert_eq!(priority(history(0, 0), fresh), 172);
        assert_eq!(priority(history(SECOND, 0), fresh), 120);
        assert_eq!(priority(history(2 * SECOND, SECOND), fresh), 145);
        assert_eq!(priority(history(0, SECOND), fresh), 172);
        let hog = Usage {
            ran: 10 * SECOND,
            first: 0,
            last: 10_000,
        };
        assert_eq!(priority(history(0, SECOND), hog), 203);
        assert_eq!((MAX_INTERACT, MIN_BATCH, BATCH_RANGE), (151, 152, 72));
    }

    #[test]
    fn who_takes_over() {
        assert!(should_preempt(200, IDLE, false));
        assert!(!should_preempt(200, 200, true));
        assert!(!should_preempt(180, 200, true), "batch waits");
        assert!(should_preempt(130, 200, true));
        assert!(!should_preempt(130, 200, false), "only elsewhere");
        assert!(!should_preempt(130, 140, true));
    }

    #[test]
    fn slices_shrink_with_the_load() {
        assert_eq!([1, 2, 3, 4, 7, 100].map(slice), [12, 12, 6, 4, 2, 2]);
    }
}

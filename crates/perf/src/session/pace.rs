//! How many switches of a CPU have their stack recorded.
//!
//! To record a stack costs its thread more than the switch itself. Where a CPU switches often, one
//! of several switches has its stack; all have their times.

/// Stacks of a CPU recorded a second at most.
const STACKS: u64 = 2_000;
/// One switch of this many has its stack. Primes, so that tasks that take turns are all seen.
const PERIODS: [u64; 9] = [1, 3, 7, 17, 37, 79, 163, 331, 673];
/// Nanoseconds over which switches are counted.
const WINDOW: u64 = 100_000_000;

/// The switches of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    count: u64,
    since: u64,
    period: u64,
}

impl Pace {
    pub fn new(time: u64) -> Pace {
        Pace {
            count: 0,
            since: time,
            period: 1,
        }
    }

    /// Counts `switches` more, up to `time`. Returns the period from now on if it changes.
    pub fn count(&mut self, switches: u64, time: u64) -> Option<u64> {
        self.count += switches;
        let span = time.saturating_sub(self.since);
        if span < WINDOW {
            return None;
        }
        let rate = self.count * 1_000_000_000 / span;
        (self.count, self.since) = (0, time);
        let enough = PERIODS.into_iter().find(|period| rate / period <= STACKS);
        let period = enough.unwrap_or(PERIODS[PERIODS.len() - 1]);
        let is_new = std::mem::replace(&mut self.period, period) != period;
        is_new.then_some(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_switches_all_have_their_stack_and_frequent_ones_some() {
        const SECOND: u64 = 1_000_000_000;
        let mut pace = Pace::new(0);
        assert_eq!(pace.count(1_900, SECOND), None);
        assert_eq!(pace.count(50_000, 2 * SECOND), Some(37));
        assert_eq!(pace.count(1_000, 2 * SECOND + WINDOW / 2), None, "too soon");
        assert_eq!(pace.count(59_000, 3 * SECOND), None);
        assert_eq!(pace.count(1_000_000_000, 4 * SECOND), Some(673));
        assert_eq!(pace.count(0, 5 * SECOND), Some(1));
    }
}

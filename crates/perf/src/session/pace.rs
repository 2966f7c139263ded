//! How many switches of a CPU have their stack recorded.
//!
//! To record a stack costs its thread more than the switch itself. Where a CPU switches often, one
//! of several switches has its stack; all have their times.

/// Stacks of a CPU recorded a second at most.
const STACKS: u64 = 20_000;
/// Nanoseconds over which switches are counted.
const WINDOW: u64 = 50_000_000;

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

    /// Counts `switches` more, up to `time`. Returns how many switches one stack stands for from
    /// now on, if that changes. It does each time where it is more than one: tasks that take turns
    /// switch in a pattern, and the same ones must not be hit again and again.
    pub fn count(&mut self, switches: u64, time: u64) -> Option<u64> {
        self.count += switches;
        let span = time.saturating_sub(self.since);
        if span < WINDOW {
            return None;
        }
        let rate = self.count * 1_000_000_000 / span;
        (self.count, self.since) = (0, time);
        let least = rate.div_ceil(STACKS).max(1);
        let period = match least {
            1 => 1,
            // The microseconds of a round are as good as random.
            _ => least + time / 1_000 % least,
        };
        let is_new = std::mem::replace(&mut self.period, period) != period;
        (is_new || period > 1).then_some(period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_switches_all_have_their_stack_and_frequent_ones_some() {
        const SECOND: u64 = 1_000_000_000;
        let mut pace = Pace::new(0);
        assert_eq!(pace.count(19_000, SECOND), None);
        assert_eq!(pace.count(1_000, SECOND + WINDOW / 2), None, "too soon");
        let mut time = 2 * SECOND;
        let mut next = |switches| {
            time += SECOND + 1_000;
            pace.count(switches, time)
        };
        next(0);
        let periods: Vec<u64> = (0..100).filter_map(|_| next(200_000)).collect();
        let mean = periods.iter().sum::<u64>() as f64 / periods.len() as f64;
        assert_eq!(periods.len(), 100, "each time anew");
        assert!(periods.iter().all(|period| (10..20).contains(period)));
        assert!((13.0..16.0).contains(&mean), "{mean}");
        assert_eq!(next(0), Some(1));
    }
}

//! Medians of rounds.

use std::time::Instant;

/// A time in nanoseconds, as the rounds gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    pub median: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
    /// The number of rounds.
    pub rounds: usize,
}

/// The subject of a reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The profile's key, or a name of its own for a figure that is divided among several.
    pub key: &'static str,
    /// How it was measured.
    pub how: &'static str,
    /// The time.
    pub reading: Reading,
}

impl Figure {
    /// A reading for the number `key`.
    pub fn new(key: &'static str, how: &'static str, reading: Reading) -> Self {
        Figure { key, how, reading }
    }
}

impl Reading {
    /// The median and quartiles of the times of the rounds (one or more), in ns.
    pub fn of(times: impl IntoIterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.into_iter().collect();
        times.sort_by(f64::total_cmp);
        let at = |quarter: usize| times[(times.len() - 1) * quarter / 4];
        Reading {
            median: at(2),
            low: at(1),
            high: at(3),
            rounds: times.len(),
        }
    }

    /// Times `rounds` of `count` calls each; the reading is of one call. One more round goes
    /// before, for caches and clocks.
    pub fn each(rounds: usize, count: usize, mut call: impl FnMut()) -> Self {
        let mut round = || {
            let start = Instant::now();
            for _ in 0..count {
                call();
            }
            start.elapsed().as_nanos() as f64 / count as f64
        };
        round();
        Reading::of((0..rounds).map(|_| round()))
    }

    /// The rest when `other` is part of it; none if noise leaves nothing.
    pub fn minus(self, other: Reading) -> Option<Reading> {
        let rest = Reading {
            median: self.median - other.median,
            low: (self.low - other.high).max(0.0),
            high: (self.high - other.low).max(0.0),
            ..self
        };
        (rest.median > 0.0).then_some(rest)
    }

    /// A share of it.
    pub fn times(self, factor: f64) -> Reading {
        Reading {
            median: factor * self.median,
            low: factor * self.low,
            high: factor * self.high,
            ..self
        }
    }

    /// The median in picoseconds, as a profile has it: at least one, at most a second.
    pub fn picoseconds(&self) -> u64 {
        (self.median * 1e3).round().clamp(1.0, 1e12) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_of_sorted_rounds() {
        let reading = Reading::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        let expected = Reading {
            median: 3.0,
            low: 2.0,
            high: 4.0,
            rounds: 5,
        };
        assert_eq!(reading, expected);
        assert_eq!(Reading::of([7.0]).median, 7.0);
    }

    #[test]
    fn a_difference_is_positive_or_none() {
        let (three, one) = (Reading::of([3.0]), Reading::of([1.0]));
        assert_eq!(three.minus(one).map(|rest| rest.median), Some(2.0));
        assert_eq!(one.minus(three), None);
        assert_eq!(one.minus(one), None);
    }

    #[test]
    fn picoseconds_stay_within_a_profile() {
        let picoseconds = |ns| Reading::of([ns]).picoseconds();
        assert_eq!(
            [0.0, 1.2345, 1e30].map(picoseconds),
            [1, 1235, 1_000_000_000_000]
        );
    }

    #[test]
    fn every_call_is_made() {
        let mut calls = 0;
        let reading = Reading::each(3, 10, || calls += 1);
        assert_eq!((calls, reading.rounds), (40, 3));
    }
}

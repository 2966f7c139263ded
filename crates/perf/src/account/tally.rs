//! Times, counted and added up.

use hdrhistogram::Histogram;
use profile::{Bucket, Spread};

/// A wait, or the part of it that lies in one interval of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Nanoseconds of the part.
    pub part: u64,
    /// Nanoseconds of the whole wait up to the end of the part.
    pub whole: u64,
    /// True if the wait ended with the part.
    pub ended: bool,
}

/// Waits: their number, total, longest time, and distribution; in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    /// Waits that ended.
    pub count: u64,
    /// Waits that last on.
    pub open: u64,
    /// The parts of all, added up.
    pub total: u64,
    /// The longest, from its beginning.
    pub worst: u64,
    /// All waits from their beginnings, added up.
    pub whole: u64,
    /// The same times, each to about six per cent.
    spread: Histogram<u32>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            count: 0,
            open: 0,
            total: 0,
            worst: 0,
            whole: 0,
            spread: Histogram::new(1).expect("one digit is allowed"),
        }
    }
}

impl Tally {
    pub fn add(&mut self, span: Span) {
        if span.ended {
            self.count += 1;
        } else {
            self.open += 1;
        }
        self.total += span.part;
        self.whole += span.whole;
        self.worst = self.worst.max(span.whole);
        // Cannot fail: the histogram grows as needed.
        let _ = self.spread.record(span.whole);
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Tally) {
        self.count += other.count;
        self.open += other.open;
        self.total += other.total;
        self.whole += other.whole;
        self.worst = self.worst.max(other.worst);
        self.spread += &other.spread;
    }

    /// Multiplies the number of waits by `count`, and their total by `total`.
    pub fn scale(&mut self, count: f64, total: f64) {
        let times = |number: u64, factor: f64| (number as f64 * factor).round() as u64;
        self.count = times(self.count, count);
        self.open = times(self.open, count);
        self.total = times(self.total, total);
        self.whole = times(self.whole, total);
        let sampled = self.spread.clone();
        for step in sampled.iter_recorded() {
            let more = times(step.count_at_value().into(), count - 1.0);
            // Cannot fail: the histogram has this value.
            let _ = self.spread.record_n(step.value_iterated_to(), more as u32);
        }
    }

    /// The average wait, from its beginning.
    pub fn mean(&self) -> u64 {
        self.whole / (self.count + self.open).max(1)
    }

    /// The time that this part of all does not exceed, in seconds.
    pub fn quantile(&self, part: f64) -> f64 {
        let nanoseconds = self.spread.value_at_quantile(part).min(self.worst);
        nanoseconds as f64 / 1e9
    }

    /// How they are distributed; none without any.
    pub fn spread(&self) -> Option<Spread> {
        const FIRST: u64 = 1_000;
        let steps = self.spread.iter_log(FIRST, 2.0);
        let buckets = steps.map(|step| Bucket {
            below: (step.value_iterated_to() + 1) as f64 / 1e9,
            count: step.count_since_last_iteration(),
        });
        (!self.spread.is_empty()).then(|| Spread {
            count: self.spread.len(),
            total: self.total as f64 / 1e9,
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            worst: self.worst as f64 / 1e9,
            buckets: buckets.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_long_time_shows_in_the_tail_and_not_in_the_middle() {
        let ended = |nanoseconds| Span {
            part: nanoseconds,
            whole: nanoseconds,
            ended: true,
        };
        let mut tally = Tally::default();
        assert_eq!(tally.spread(), None);
        for _ in 0..990 {
            tally.add(ended(1_500));
        }
        let mut long = Tally::default();
        for _ in 0..10 {
            long.add(ended(140_000_000));
        }
        tally.add_all(&long);
        let spread = tally.spread().expect("times");
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.1;
        assert!(
            near(spread.p50, 1.5e-6) && near(spread.p999, 0.14),
            "{spread:?}"
        );
        assert!(
            near(spread.p99, 1.5e-6) && spread.worst == 0.14,
            "{spread:?}"
        );
        let all: u64 = spread.buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!((all, spread.buckets[0].count), (1_000, 0));
        assert!(near(spread.buckets[1].below, 2e-6), "{spread:?}");
        assert_eq!(spread.buckets[1].count, 990);
    }
}

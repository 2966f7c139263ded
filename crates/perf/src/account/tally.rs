//! Times, counted.

use hdrhistogram::Histogram;
use profile::{Bucket, Spread};

/// The number of times, their total, the longest, and how they are distributed; in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub count: u64,
    pub total: u64,
    pub worst: u64,
    /// Each to about a tenth.
    spread: Histogram<u32>,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally {
            count: 0,
            total: 0,
            worst: 0,
            spread: Histogram::new(1).expect("one digit is allowed"),
        }
    }
}

impl Tally {
    /// Adds a time.
    pub fn add(&mut self, nanoseconds: u64) {
        self.count += 1;
        self.total += nanoseconds;
        self.worst = self.worst.max(nanoseconds);
        // Cannot fail: the histogram grows as needed.
        let _ = self.spread.record(nanoseconds);
    }

    /// Adds the times of `other`.
    pub fn add_all(&mut self, other: &Tally) {
        self.count += other.count;
        self.total += other.total;
        self.worst = self.worst.max(other.worst);
        // Cannot fail: the histogram grows as needed.
        let _ = self.spread.add(&other.spread);
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
        (self.count > 0).then(|| Spread {
            count: self.count,
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
        let mut tally = Tally::default();
        assert_eq!(tally.spread(), None);
        for _ in 0..990 {
            tally.add(1_500);
        }
        let mut long = Tally::default();
        for _ in 0..10 {
            long.add(140_000_000);
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

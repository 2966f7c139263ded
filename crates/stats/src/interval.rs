//! The median of a few numbers, and how certain it is.

use statrs::function::beta::beta_reg;

use crate::ministat::median;

/// A median with an interval between two of the numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The chance that such an interval contains the true median: at least the requested level if
    /// there are enough numbers, otherwise that of all of them; 0 for a single one.
    pub level: f64,
}

/// The median of independent `numbers` and its interval by the sign test, exact for any
/// distribution without ties and conservative with them. `None` without numbers. Fewer than 6
/// numbers reach no 95 %: the highest and lowest of 5 enclose the median in 93.75 %.
pub fn of_median(numbers: &[f64], level: f64) -> Option<Median> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&lowest, &highest) = (sorted.first()?, sorted.last()?);
    let n = sorted.len();
    let inner = (1..n / 2)
        .take_while(|&left_out| holds(n, left_out) >= level)
        .last()
        .unwrap_or(0);
    let (low, high) = match inner {
        0 => (lowest, highest),
        left_out => (sorted[left_out], sorted[n - 1 - left_out]),
    };
    Some(Median {
        median: median(&sorted),
        low,
        high,
        level: holds(n, inner),
    })
}

/// The chance that the median lies between the numbers next to the `left_out` lowest and highest:
/// the chance that, of `n` fair coins, more than `left_out` fall on each side.
fn holds(n: usize, left_out: usize) -> f64 {
    let (n, k) = (n as f64, left_out as f64);
    if n < 2.0 {
        return 0.0;
    }
    // P(at most k heads of n) = I(1/2; n - k, k + 1).
    1.0 - 2.0 * beta_reg(n - k, k + 1.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_binomial_tables() {
        // n, numbers left out at each end at 95 %, and 1 - 2 P(at most that many heads of n fair
        // coins), summed by hand.
        for (n, left_out, level) in [
            (6, 0, 0.96875),
            (8, 0, 0.9921875),
            (9, 1, 0.9609375),
            (10, 1, 0.978515625),
            (15, 3, 0.964843750),
            (20, 5, 0.958610535),
            (25, 7, 0.956714749),
        ] {
            let numbers: Vec<f64> = (0..n).rev().map(f64::from).collect();
            let found = of_median(&numbers, 0.95).unwrap();
            assert_eq!(
                (found.low, found.high),
                (f64::from(left_out), f64::from(n - 1 - left_out))
            );
            assert_eq!(found.median, f64::from(n - 1) / 2.0);
            assert!((found.level - level).abs() < 1e-8, "{n}: {}", found.level);
        }
    }

    #[test]
    fn few_numbers_say_how_little_they_know() {
        let level = |numbers: &[f64]| of_median(numbers, 0.95).unwrap().level;
        assert!((level(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 0.9375).abs() < 1e-12);
        assert!((level(&[1.0, 2.0]) - 0.5).abs() < 1e-12);
        assert_eq!(level(&[1.0]), 0.0);
        assert_eq!(of_median(&[], 0.95), None);
    }
}

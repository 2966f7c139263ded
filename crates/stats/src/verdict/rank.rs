//! The exact Mann–Whitney (Wilcoxon rank-sum) test, and the interval that belongs to it.
//!
//! Up to [`EXACT`] runs the null distribution is counted, not approximated: how many of the equally
//! likely choices of B's runs from the pooled runs give each rank sum. Ties share their mean rank
//! and are counted with it, so the test stays exact. Larger sizes use the normal approximation with
//! tie and continuity correction.

use statrs::function::erf::{erfc, erfc_inv};

/// Pooled sizes up to this are counted exactly; the cost is O(n³) to O(n⁴) additions, some 10 ms at
/// 100.
pub const EXACT: usize = 100;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Pairs in which B is higher; a tie counts half. From 0 to n·m; n·m/2 means no difference.
    pub u: f64,
    /// Two-sided probability of a rank sum at least this far from its mean if A and B do not
    /// differ.
    pub p: f64,
    /// True if `p` is exact.
    pub exact: bool,
}

/// Tests B against A. Both must contain at least one number and no NaN.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> RankTest {
    let (ranks, b_sum) = doubled_ranks(a, b);
    let total = ranks.len();
    let lowest = b.len() * (b.len() + 1);
    let u = (b_sum - lowest) as f64 / 2.0;
    // Doubled ranks are whole numbers; the mean of the doubled sum is m(N + 1).
    let distance = b_sum.abs_diff(b.len() * (total + 1));
    let p = if total <= EXACT {
        exact(&ranks, b.len(), distance)
    } else {
        approximate(&ranks, b.len(), distance)
    };
    RankTest {
        u,
        p,
        exact: total <= EXACT,
    }
}

/// The probability of a doubled rank sum at least `distance` from its mean, by counting.
fn exact(ranks: &[usize], chosen: usize, distance: usize) -> f64 {
    let centre = chosen * (ranks.len() + 1);
    Sums::count(ranks, chosen)
        .share(|sum| sum.abs_diff(centre) >= distance)
        .min(1.0)
}

/// The probability of a doubled rank sum at least `distance` from its mean, by the normal
/// distribution.
fn approximate(ranks: &[usize], chosen: usize, distance: usize) -> f64 {
    let (all, m) = (ranks.len() as f64, chosen as f64);
    let ties: f64 = ranks
        .chunk_by(|x, y| x == y)
        .map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64)
        .sum();
    let variance = (all - m) * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    // Runs that are all equal are no evidence.
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (distance as f64 / 2.0 - 0.5).max(0.0) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2)
}

/// The number of sorted pairwise differences to omit at each end, so that the rest covers the
/// shift with at least `1 - alpha`; `None` if even all of them do not. Also returns the level
/// attained (without ties).
pub(super) fn trimmed_pairs(n: usize, m: usize, alpha: f64) -> Option<(usize, f64)> {
    if n + m > EXACT {
        return Some((approximate_trim(n, m, alpha), 1.0 - alpha));
    }
    let ranks: Vec<usize> = (1..=n + m).map(|rank| 2 * rank).collect();
    let counts = Sums::count(&ranks, m);
    let lowest = m * (m + 1);
    let tail = |trimmed: usize| counts.share(|sum| sum <= lowest + 2 * trimmed);
    let trimmed = (0..n * m / 2)
        .take_while(|&trimmed| tail(trimmed) <= alpha / 2.0)
        .last()?;
    Some((trimmed, 1.0 - 2.0 * tail(trimmed)))
}

/// The number of sorted pairwise differences to omit at each end, by the normal distribution.
fn approximate_trim(n: usize, m: usize, alpha: f64) -> usize {
    let (n, m) = (n as f64, m as f64);
    let z = std::f64::consts::SQRT_2 * erfc_inv(alpha);
    // With a continuity correction as in the test: U = trimmed is significant if it is half a step
    // beyond the border.
    (n * m / 2.0 - 0.5 - z * (n * m * (n + m + 1.0) / 12.0).sqrt()).max(0.0) as usize
}

/// The actual chance of a false alarm of the exact test at `alpha`: the largest attainable one not
/// above it, 0 if it can never alarm. For five against five it is 0.032 at 0.05.
pub fn attained_level(n: usize, m: usize, alpha: f64) -> f64 {
    trimmed_pairs(n, m, alpha).map_or(0.0, |(_, coverage)| 1.0 - coverage)
}

/// Twice the ranks of the pooled runs, ascending, where ties share their mean; and the sum of those
/// of B's runs.
fn doubled_ranks(a: &[f64], b: &[f64]) -> (Vec<usize>, usize) {
    let mut pooled: Vec<(f64, bool)> = a
        .iter()
        .map(|&x| (x, false))
        .chain(b.iter().map(|&x| (x, true)))
        .collect();
    pooled.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut ranks, mut b_sum) = (Vec::with_capacity(pooled.len()), 0);
    for tied in pooled.chunk_by(|x, y| x.0 == y.0) {
        // Ranks r + 1 … r + k have the mean r + (k + 1) / 2.
        let rank = 2 * ranks.len() + tied.len() + 1;
        ranks.extend(std::iter::repeat_n(rank, tied.len()));
        b_sum += rank * tied.iter().filter(|run| run.1).count();
    }
    (ranks, b_sum)
}

/// For each sum, the number of choices of ranks with that sum.
struct Sums {
    ways: Vec<f64>,
}

impl Sums {
    /// Counts the choices of `chosen` among `ranks`. The counts stay below C(100, 50) ≈ 10²⁹; as
    /// doubles they are accurate to some 13 digits, since sums of positive terms lose nothing to
    /// cancellation.
    fn count(ranks: &[usize], chosen: usize) -> Self {
        let highest: usize = ranks.iter().rev().take(chosen).sum();
        let mut ways = vec![vec![0.0; highest + 1]; chosen + 1];
        ways[0][0] = 1.0;
        for &rank in ranks {
            for taken in (1..=chosen).rev() {
                let (before, after) = ways.split_at_mut(taken);
                for sum in rank..=highest {
                    after[0][sum] += before[taken - 1][sum - rank];
                }
            }
        }
        Self {
            ways: ways.pop().unwrap_or_default(),
        }
    }

    /// The share of all choices whose sum satisfies `condition`.
    fn share(&self, condition: impl Fn(usize) -> bool) -> f64 {
        let wanted: f64 = self
            .ways
            .iter()
            .enumerate()
            .filter(|(sum, _)| condition(*sum))
            .map(|(_, ways)| ways)
            .sum();
        wanted / self.ways.iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separated(n: usize, m: usize) -> f64 {
        let a: Vec<f64> = (0..n).map(|x| x as f64).collect();
        let b: Vec<f64> = (0..m).map(|x| 100.0 + x as f64).collect();
        mann_whitney(&a, &b).p
    }

    #[test]
    fn fully_separated_samples_have_the_textbook_probability() {
        // 2 / C(n + m, n)
        for (n, m, p) in [
            (5, 5, 2.0 / 252.0),
            (3, 3, 0.1),
            (4, 4, 2.0 / 70.0),
            (8, 8, 2.0 / 12870.0),
            (1, 9, 0.2),
            (3, 4, 2.0 / 35.0),
        ] {
            assert!(
                (separated(n, m) - p).abs() < 1e-12,
                "{n} against {m}: {}",
                separated(n, m)
            );
        }
        assert_eq!(format!("{:.4}", separated(5, 5)), "0.0079");
    }

    #[test]
    fn critical_values_of_the_published_tables() {
        // Largest U significant at 0.05 two-sided (Mann and Whitney 1947; Milton 1964); none below
        // 4 against 4.
        let table = [
            (4, 4, 0),
            (4, 5, 1),
            (5, 5, 2),
            (5, 6, 3),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (9, 9, 17),
            (10, 10, 23),
            (12, 12, 37),
            (15, 15, 64),
            (20, 20, 127),
            (5, 10, 8),
            (8, 15, 29),
            (3, 5, 0),
            (2, 8, 0),
            (10, 20, 55),
        ];
        for (n, m, u) in table {
            assert_eq!(
                trimmed_pairs(n, m, 0.05).map(|found| found.0),
                Some(u),
                "{n} against {m}"
            );
        }
        assert_eq!(trimmed_pairs(3, 3, 0.05), None);
        assert_eq!(trimmed_pairs(2, 7, 0.05), None);
        assert!((attained_level(5, 5, 0.05) - 8.0 / 252.0).abs() < 1e-12);
        assert_eq!(attained_level(3, 3, 0.05), 0.0);
    }

    #[test]
    fn ties_are_counted_as_every_permutation_would() {
        let (a, b) = ([1.0, 2.0, 2.0, 3.0, 3.0], [2.0, 3.0, 3.0, 4.0]);
        let pooled: Vec<f64> = a.iter().chain(&b).copied().collect();
        let u_of = |mask: u32| {
            let side = |of_b: bool| {
                (0..pooled.len())
                    .filter(move |&i| (mask >> i & 1 == 1) == of_b)
                    .map(|i| pooled[i])
            };
            let pair = |x: f64, y: f64| {
                if y > x {
                    1.0
                } else if y == x {
                    0.5
                } else {
                    0.0
                }
            };
            side(false)
                .flat_map(|x| side(true).map(move |y| pair(x, y)))
                .sum::<f64>()
        };
        let centre = (a.len() * b.len()) as f64 / 2.0;
        let observed = u_of(0b1_1110_0000);
        let all: Vec<f64> = (0..1 << pooled.len())
            .filter(|mask: &u32| mask.count_ones() == 4)
            .map(u_of)
            .collect();
        let far = all
            .iter()
            .filter(|u| (*u - centre).abs() >= (observed - centre).abs())
            .count();
        let test = mann_whitney(&a, &b);
        assert_eq!(test.u, observed);
        assert!(
            (test.p - far as f64 / all.len() as f64).abs() < 1e-12,
            "{test:?}"
        );
    }

    #[test]
    fn approximation_joins_the_exact_test() {
        // Ranks in pairs and triples, 40 of 90 chosen: the tails agree even far out.
        let ranks: Vec<usize> = (0..30)
            .flat_map(|i| [6 * i + 2, 6 * i + 5, 6 * i + 5])
            .collect();
        for distance in [100, 800, 1200, 1600] {
            let (counted, normal) = (
                exact(&ranks, 40, distance),
                approximate(&ranks, 40, distance),
            );
            assert!(
                (counted - normal).abs() < 0.002 + 0.01 * counted,
                "{distance}: {counted} {normal}"
            );
        }
        assert!(exact(&ranks, 40, 1600) < 0.01);
        for (n, m) in [(10, 10), (12, 20), (20, 20), (25, 15)] {
            let (counted, _) = trimmed_pairs(n, m, 0.05).unwrap();
            assert!(
                counted.abs_diff(approximate_trim(n, m, 0.05)) <= 1,
                "{n} against {m}: {counted}"
            );
        }
    }

    /// Computed with Python's `statistics`: the variance of a sum of ranks drawn without
    /// replacement is m (N - m) / N times the (unbiased) variance of all ranks.
    #[test]
    fn the_approximation_has_the_variance_of_draws_without_replacement() {
        let a: Vec<f64> = (0..70).map(|i| f64::from(i % 10)).collect();
        let b: Vec<f64> = (0..50).map(|i| f64::from(i * i % 7 + 2)).collect();
        let test = mann_whitney(&a, &b);
        assert_eq!((test.u, test.exact), (1561.0, false));
        assert!((test.p - 0.310_987_256_82).abs() < 1e-9, "{test:?}");
        // floor(n m / 2 - 1 / 2 - z sqrt(n m (n + m + 1) / 12)), z = NormalDist().inv_cdf(0.975)
        for (n, m, trimmed) in [(100, 100, 4197), (60, 50, 1173), (101, 3, 50)] {
            assert_eq!(trimmed_pairs(n, m, 0.05), Some((trimmed, 0.95)), "{n} {m}");
        }
    }

    #[test]
    fn equal_runs_are_no_evidence() {
        for n in [5, 60] {
            let test = mann_whitney(&vec![1.0; n], &vec![1.0; n]);
            assert_eq!((test.p, test.u), (1.0, (n * n) as f64 / 2.0));
        }
    }
}

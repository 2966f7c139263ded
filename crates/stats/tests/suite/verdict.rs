//! Laws of the statistics, on random runs.

use proptest::collection::vec;
use proptest::prelude::*;
use stats::ministat::{Confidence, Dataset, Difference};
use stats::verdict::{Better, Rule, Verdict, Word, judge, mann_whitney};

/// Runs on a coarse grid, so that ties occur.
fn runs(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec((900_u32..1100).prop_map(f64::from), sizes)
}

fn verdict(a: &[f64], b: &[f64]) -> Verdict {
    judge(a, b, &Rule::default()).unwrap()
}

fn close(x: f64, y: f64) -> bool {
    x == y || (x - y).abs() <= 1e-9 * x.abs().max(y.abs())
}

fn opposite(word: Word) -> Word {
    match word {
        Word::Faster => Word::Slower,
        Word::Slower => Word::Faster,
        same => same,
    }
}

/// `items` in an order made from `seed`.
fn shuffled(items: &[f64], seed: u64) -> Vec<f64> {
    let mut items = items.to_vec();
    items.sort_by_key(|item| (item.to_bits() ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    items
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    })]

    #[test]
    fn swapping_the_sides_inverts_the_verdict(a in runs(2..9), b in runs(2..9)) {
        let (there, back) = (verdict(&a, &b), verdict(&b, &a));
        prop_assert_eq!(back.word, opposite(there.word));
        prop_assert!(close(there.rank.p, back.rank.p) && close(there.welch.p, back.welch.p));
        prop_assert_eq!(there.rank.u + back.rank.u, (a.len() * b.len()) as f64);
        for (one, other) in [(there.ratio, back.ratio), (there.means, back.means)] {
            let other = other.inverse();
            prop_assert!(close(one.estimate, other.estimate), "{one:?} {other:?}");
            prop_assert!(close(one.low, other.low), "{one:?} {other:?}");
            prop_assert!(close(one.high, other.high), "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_order_of_the_runs_does_not_matter(a in runs(2..9), b in runs(2..9), seed: u64) {
        let (one, other) = (verdict(&a, &b), verdict(&shuffled(&a, seed), &shuffled(&b, seed)));
        prop_assert_eq!((one.word, one.ratio), (other.word, other.ratio));
        prop_assert_eq!((one.rank, one.means), (other.rank, other.means));
        prop_assert!(close(one.welch.p, other.welch.p));
    }

    #[test]
    fn the_unit_does_not_matter(a in runs(2..9), b in runs(2..9), factor in 1e-6..1e6) {
        let scaled = |side: &[f64]| side.iter().map(|value| value * factor).collect::<Vec<_>>();
        let (one, other) = (verdict(&a, &b), verdict(&scaled(&a), &scaled(&b)));
        prop_assert!(close(one.ratio.estimate, other.ratio.estimate));
        prop_assert!(close(one.rank.p, other.rank.p));
    }

    #[test]
    fn a_shift_of_everything_changes_no_rank_and_no_difference(
        a in runs(3..9),
        b in runs(3..9),
        shift in 1_u32..100_000,
    ) {
        let shifted =
            |side: &[f64]| side.iter().map(|value| value + f64::from(shift)).collect::<Vec<_>>();
        prop_assert_eq!(mann_whitney(&a, &b), mann_whitney(&shifted(&a), &shifted(&b)));
        let between = |a: Vec<f64>, b: Vec<f64>| {
            let (a, b) = (Dataset::new("a", a).unwrap(), Dataset::new("b", b).unwrap());
            Difference::between(&a, &b, Confidence::P95)
        };
        let (one, other) = (between(a.clone(), b.clone()), between(shifted(&a), shifted(&b)));
        prop_assert!((one.absolute - other.absolute).abs() < 1e-6);
        prop_assert!((one.pooled - other.pooled).abs() < 1e-6);
    }

    #[test]
    fn estimate_lies_in_its_interval_and_time_is_throughput_upside_down(
        a in runs(2..9),
        b in runs(2..9),
    ) {
        let rates = verdict(&a, &b);
        prop_assert!(rates.ratio.low <= rates.ratio.estimate);
        prop_assert!(rates.ratio.estimate <= rates.ratio.high);
        prop_assert!((0.0..=1.0).contains(&rates.rank.p));
        let times = |side: &[f64]| side.iter().map(|value| 1.0 / value).collect::<Vec<_>>();
        let rule = Rule { better: Better::Lower, ..Rule::default() };
        let timed = judge(&times(&a), &times(&b), &rule).unwrap();
        prop_assert_eq!(rates.word, timed.word);
    }

    #[test]
    fn a_great_difference_is_always_seen(a in runs(4..9), b in runs(4..9)) {
        let higher: Vec<f64> = b.iter().map(|value| value * 2.0).collect();
        prop_assert_eq!(verdict(&a, &higher).word, Word::Faster);
    }
}

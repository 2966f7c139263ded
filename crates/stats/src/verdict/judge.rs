//! The decision, by the table in [`verdict`](super).

use super::{
    ALPHA, Better, RankTest, Ratio, Rule, RunsError, Verdict, Word, bootstrap_of_means,
    hodges_lehmann, mann_whitney, welch,
};
use crate::ministat::{mean, variance};

/// Judges B's runs against A's. The order of the runs does not matter.
pub fn judge(a: &[f64], b: &[f64], rule: &Rule) -> Result<Verdict, RunsError> {
    check('A', a)?;
    check('B', b)?;
    near(a, b)?;
    near(b, a)?;
    if !rule.minimum_effect.is_finite() || rule.minimum_effect < 0.0 {
        return Err(RunsError::MinimumEffect(rule.minimum_effect));
    }
    let ratio = hodges_lehmann(a, b, ALPHA);
    let rank = mann_whitney(a, b);
    Ok(Verdict {
        word: word(a, b, ratio, rank, rule),
        ratio,
        rank,
        means: bootstrap_of_means(a, b, ALPHA, rule.seed),
        welch: welch(a, b),
        runs: (a.len(), b.len()),
    })
}

fn check(side: char, runs: &[f64]) -> Result<(), RunsError> {
    if runs.len() < 2 {
        return Err(RunsError::TooFew {
            side,
            runs: runs.len(),
        });
    }
    match runs
        .iter()
        .position(|value| !value.is_normal() || *value < 0.0)
    {
        Some(at) => Err(RunsError::NotPositive {
            side,
            run: at + 1,
            value: runs[at],
        }),
        None => Ok(()),
    }
}

/// From here on a ratio is no figure any more, and an interval around it soon no number.
const FARTHEST: f64 = 1e300;

/// Refuses sides where some run of B has no ratio to one of A.
fn near(a: &[f64], b: &[f64]) -> Result<(), RunsError> {
    let low = a.iter().copied().fold(f64::INFINITY, f64::min);
    let high = b.iter().copied().fold(0.0, f64::max);
    if high / low < FARTHEST {
        Ok(())
    } else {
        Err(RunsError::TooFarApart { low, high })
    }
}

fn word(a: &[f64], b: &[f64], ratio: Ratio, rank: RankTest, rule: &Rule) -> Word {
    // On a logarithmic scale "twice" and "half" are equally far from 1.
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(f64::ln);
    let effect = rule.minimum_effect.ln_1p();
    let apart = (low > 0.0 || high < 0.0) && rank.p <= ALPHA;
    if apart && estimate.abs() >= effect {
        return if (estimate > 0.0) == (rule.better == Better::Higher) {
            Word::Faster
        } else {
            Word::Slower
        };
    }
    if -effect <= low && high <= effect {
        return Word::NoDifferenceShown;
    }
    Word::Inconclusive {
        more_runs: more_runs(a, b, estimate.abs(), effect),
    }
}

/// Runs to add on each side so that, with a probability of 0.8, a difference as large as the
/// observed one is shown, or one below the minimum effect is shown to be below it; from the pooled
/// variance of the logarithms.
fn more_runs(a: &[f64], b: &[f64], distance: f64, effect: f64) -> usize {
    /// Fewest runs per side with which the rank test can be significant at all.
    const FEWEST: usize = 4;
    /// Normal quantiles of 1 - ALPHA / 2 and of 0.8, added.
    const REACH: f64 = 1.959_964 + 0.841_621;
    /// Efficiency of the rank test relative to the t test for normal runs: 3 / π.
    const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;
    const MOST: f64 = 1e6;
    let logarithms =
        |side: &[f64]| variance(&side.iter().map(|value| value.ln()).collect::<Vec<_>>());
    let pooled = mean(&[logarithms(a), logarithms(b)]);
    // The distance of the estimate from its border. It may be 0, but the estimate is uncertain and
    // will move: then plan for half the minimum effect.
    let target = if distance >= effect {
        distance
    } else {
        (effect - distance).max(effect / 2.0)
    };
    let wanted = (2.0 * pooled * (REACH / target).powi(2) / EFFICIENCY).ceil();
    // Without a minimum effect and without any difference no number of runs is enough; neither is
    // any if the target is out of reach.
    let wanted = if wanted.is_finite() {
        wanted.min(MOST) as usize
    } else {
        MOST as usize
    };
    wanted
        .max(FEWEST)
        .saturating_sub(a.len().min(b.len()))
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exit;

    fn word(a: &[f64], b: &[f64]) -> Word {
        judge(a, b, &Rule::default()).unwrap().word
    }

    const BEFORE: [f64; 5] = [1005918.0, 1006319.0, 1009119.0, 1013143.0, 1009155.0];
    const AFTER: [f64; 5] = [3548585.0, 3548786.0, 3552085.0, 3552502.0, 3552587.0];

    #[test]
    fn case_study_000_is_faster() {
        let verdict = judge(&BEFORE, &AFTER, &Rule::default()).unwrap();
        assert_eq!(
            (verdict.word, verdict.exit()),
            (Word::Faster, Exit::Success)
        );
        let text = verdict.to_string();
        assert!(
            text.starts_with("faster: B is 3.52") && text.contains("rank test p = 0.0079;"),
            "{text}"
        );
        assert!(text.ends_with("; 5 + 5 runs)"), "{text}");
        let back = judge(&AFTER, &BEFORE, &Rule::default()).unwrap();
        assert_eq!((back.word, back.exit()), (Word::Slower, Exit::Regressed));
        let time = judge(
            &BEFORE,
            &AFTER,
            &Rule {
                better: Better::Lower,
                ..Rule::default()
            },
        )
        .unwrap();
        assert_eq!(time.word, Word::Slower);
    }

    #[test]
    fn close_runs_show_no_difference_and_wide_ones_nothing() {
        let close = [100.0, 100.1, 99.9, 100.05, 99.95];
        let shifted = close.map(|value| value * 1.001);
        assert_eq!(word(&close, &shifted), Word::NoDifferenceShown);
        // This difference counts if smaller effects are declared to matter.
        let strict = Rule {
            minimum_effect: 0.0005,
            ..Rule::default()
        };
        let wide = [100.0, 110.0, 90.0, 105.0, 95.0];
        let verdict = judge(&wide, &wide.map(|value| value * 1.001), &strict).unwrap();
        assert!(
            matches!(verdict.word, Word::Inconclusive { .. }),
            "{verdict}"
        );
        assert_eq!(verdict.exit(), Exit::Inconclusive);
    }

    #[test]
    fn a_difference_below_the_minimum_effect_is_not_called_faster() {
        let a = [1000.0, 1000.1, 1000.2, 1000.3, 1000.4];
        let b = a.map(|value| value * 1.005);
        assert!(mann_whitney(&a, &b).p < 0.01);
        assert_eq!(word(&a, &b), Word::NoDifferenceShown);
        assert_eq!(word(&a, &a.map(|value| value * 1.02)), Word::Faster);
    }

    #[test]
    fn three_runs_can_prove_nothing_and_one_more_is_asked_for() {
        let verdict = judge(&BEFORE[..3], &AFTER[..3], &Rule::default()).unwrap();
        assert_eq!(verdict.word, Word::Inconclusive { more_runs: 1 });
        assert!(
            verdict
                .to_string()
                .contains("[too few runs for an interval]"),
            "{verdict}"
        );
    }

    #[test]
    fn the_runs_asked_for_are_about_enough() {
        // Deviation 5 %, difference 4 %: 2 · 0.05² · (2.8 / 0.0392)² · π / 3 ≈ 27 per side, so
        // about 22 more than 5.
        let normal = [-1.28, -0.52, 0.0, 0.52, 1.28].map(|z| f64::exp(0.05 * z * 1.03));
        let Word::Inconclusive { more_runs } = word(&normal, &normal.map(|value| value * 1.04))
        else {
            panic!("{normal:?}")
        };
        assert!((18..=26).contains(&more_runs), "{more_runs}");
        let many: Vec<f64> = (0..27)
            .map(|i| f64::exp(0.05 * 1.72 * 2.0 * ((i as f64 + 0.5) / 27.0 - 0.5)))
            .collect();
        let higher: Vec<f64> = many.iter().map(|value| value * 1.04).collect();
        assert_eq!(word(&many, &higher), Word::Faster);
    }

    /// All figures of a verdict that are printed.
    fn figures(verdict: &Verdict) -> Vec<f64> {
        let Verdict {
            ratio,
            rank,
            means,
            welch,
            ..
        } = verdict;
        let mut all = vec![rank.p, rank.u, welch.p, ratio.estimate, means.estimate];
        all.extend([ratio.low, ratio.high, means.low, means.high]);
        all
    }

    #[test]
    fn runs_of_any_size_have_the_same_verdict() {
        let units = [1e-290, 1e-160, 1e160, 1e290];
        let wanted = judge(&BEFORE, &AFTER, &Rule::default()).unwrap();
        for unit in units {
            let [before, after] = [BEFORE, AFTER].map(|side| side.map(|run| run * unit));
            let found = judge(&before, &after, &Rule::default()).unwrap();
            assert_eq!(found.word, wanted.word, "{unit:e}");
            for (found, wanted) in figures(&found).iter().zip(figures(&wanted)) {
                assert!(
                    (found / wanted - 1.0).abs() < 1e-6,
                    "{unit:e}: {found} {wanted}"
                );
            }
        }
        let (most, huge) = ([f64::MAX; 6], [1e308; 6]);
        for (a, b) in [(most, most), (huge, most), (most, huge)] {
            let verdict = judge(&a, &b, &Rule::default()).unwrap();
            assert!(
                figures(&verdict).iter().all(|value| value.is_finite()),
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn bad_runs_are_refused() {
        let error = |a: &[f64], b: &[f64]| judge(a, b, &Rule::default()).unwrap_err().to_string();
        assert_eq!(error(&[1.0], &BEFORE), "A needs at least 2 runs and has 1");
        assert_eq!(
            error(&BEFORE, &[1.0, 0.0]),
            "run 2 of B gave 0, which is not a positive number"
        );
        assert_eq!(
            error(&BEFORE, &[f64::NAN, 1.0]),
            "run 1 of B gave nan, which is not a positive number"
        );
        assert_eq!(
            error(&BEFORE, &[1e-310, 1.0]),
            "run 1 of B gave 1e-310, which is too close to 0 to be compared"
        );
        for (a, b) in [([1e-200; 3], [1e200; 3]), ([1e200; 3], [1e-200; 3])] {
            assert_eq!(
                error(&a, &b),
                "runs of 1e-200 and 1e200 cannot be compared: their ratio is beyond the range of \
                 numbers"
            );
        }
        let rule = Rule {
            minimum_effect: -1.0,
            ..Rule::default()
        };
        assert_eq!(
            judge(&BEFORE, &AFTER, &rule).unwrap_err(),
            RunsError::MinimumEffect(-1.0)
        );
    }
}

//! Whether B is faster than A, from interleaved runs.
//!
//! The unit is the *run* (its mean), never the sample within a run: samples of one run share its luck, and comparing them
//! calls a program different from itself in a quarter of the trials. Runs of A and B must be *interleaved* (A B A B …), or a
//! drifting machine is taken for a difference. [`self_test`] measures both claims on the machine at hand.
//!
//! The decision, with the ratio r = B / A (see [`hodges_lehmann`]), its 95 % interval, the [`mann_whitney`] test and
//! a minimum effect (1 % by default, as a factor either way):
//!
//! | the interval … | and the estimate … | word |
//! |---|---|---|
//! | leaves out 1, the test is significant | reaches the minimum effect | `faster` or `slower` |
//! | lies wholly within the minimum effect | | `no difference shown` |
//! | else | | `inconclusive (need about k more runs)` |
//!
//! "No difference shown" therefore is a finding (the difference, if any, is below the minimum effect) and never a lack
//! of data. Deciding afresh after every few runs and stopping when the word pleases raises the false alarms above 5 %: take the
//! number of runs that `k` names at once.

mod rank;
mod ratio;
mod self_test;
mod welch;

use std::fmt;

use crate::Exit;
use crate::format::general;
use crate::ministat::{mean, variance};

pub use rank::{EXACT, RankTest, attained_level, mann_whitney};
pub use ratio::{Ratio, bootstrap_of_means, hodges_lehmann};
pub use self_test::{Plan, Rate, SelfTest, self_test, self_test_of, wilson};
pub use welch::{Welch, welch};

/// Two-sided level of every test and interval here.
pub const ALPHA: f64 = 0.05;

/// Which way is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Better {
    /// Throughput: more is faster.
    #[default]
    Higher,
    /// Time: less is faster.
    Lower,
}

/// How runs are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Which way is up.
    pub better: Better,
    /// The smallest difference that matters, as a share: 0.01 is 1 %. Finite and not negative.
    pub minimum_effect: f64,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            better: Better::Higher,
            minimum_effect: 0.01,
            seed: 1,
        }
    }
}

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// B is faster than A.
    Faster,
    /// B is slower than A.
    Slower,
    /// B is as fast as A, within the minimum effect.
    NoDifferenceShown,
    /// The runs do not tell.
    Inconclusive {
        /// About how many more runs of each would, for four chances in five.
        more_runs: usize,
    },
}

impl fmt::Display for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faster => out.write_str("faster"),
            Self::Slower => out.write_str("slower"),
            Self::NoDifferenceShown => out.write_str("no difference shown"),
            Self::Inconclusive { more_runs: 1 } => {
                out.write_str("inconclusive (need about 1 more run)")
            }
            Self::Inconclusive { more_runs } => {
                write!(out, "inconclusive (need about {more_runs} more runs)")
            }
        }
    }
}

/// What two series of runs say. Displayed as one sentence, the word first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The word.
    pub word: Word,
    /// B / A, on which the word rests.
    pub ratio: Ratio,
    /// The rank test, on which it rests too.
    pub rank: RankTest,
    /// The ratio of means with its bootstrap interval, for those who quote means.
    pub means: Ratio,
    /// Welch's t test of the means.
    pub welch: Welch,
    /// Runs of A and of B.
    pub runs: (usize, usize),
}

/// Runs that cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RunsError {
    /// A side has fewer than two runs.
    #[error("{side} has {runs} run(s); at least 2 are needed")]
    TooFew {
        /// `'A'` or `'B'`.
        side: char,
        /// How many runs it has.
        runs: usize,
    },
    /// A run without a positive result has no ratio to another.
    #[error("run {run} of {side} gave {value}, which is not a positive number")]
    NotPositive {
        /// `'A'` or `'B'`.
        side: char,
        /// The run, counted from 1.
        run: usize,
        /// Its result.
        value: f64,
    },
    /// The minimum effect is no share.
    #[error("a minimum effect of {0} is no share; it is a number from 0, 0.01 being 1 %")]
    MinimumEffect(f64),
}

/// Judges B's runs against A's. The order of the runs has no influence.
pub fn judge(a: &[f64], b: &[f64], rule: &Rule) -> Result<Verdict, RunsError> {
    check('A', a)?;
    check('B', b)?;
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

impl Verdict {
    /// The exit code: the same or better is success.
    pub fn exit(&self) -> Exit {
        match self.word {
            Word::Faster | Word::NoDifferenceShown => Exit::Success,
            Word::Slower => Exit::Regressed,
            Word::Inconclusive { .. } => Exit::Inconclusive,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            word,
            ratio,
            rank,
            means,
            welch,
            runs,
        } = self;
        write!(out, "{word}: B is {} times A", shown(ratio))?;
        write!(out, " (rank test p = {}", general(rank.p, 2))?;
        write!(
            out,
            "; means {}, Welch p = {}",
            shown(means),
            general(welch.p, 2)
        )?;
        write!(out, "; {} + {} runs)", runs.0, runs.1)
    }
}

fn shown(ratio: &Ratio) -> String {
    let Ratio {
        estimate,
        low,
        high,
    } = ratio;
    match high.is_finite() {
        true => format!("{estimate:.4} [{low:.4}, {high:.4}]"),
        false => format!("{estimate:.4} [too few runs for an interval]"),
    }
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

fn word(a: &[f64], b: &[f64], ratio: Ratio, rank: RankTest, rule: &Rule) -> Word {
    // Logarithms make "twice" and "half" equally far from 1.
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

/// Runs of each side to add, so that a difference as large as the one seen is shown, or one below the minimum effect is
/// shown to be below it, with a probability of 0.8, from the pooled variance of the logarithms.
fn more_runs(a: &[f64], b: &[f64], distance: f64, effect: f64) -> usize {
    /// Fewest runs of each with which the rank test can be significant at all.
    const FEWEST: usize = 4;
    /// Normal quantiles of 1 - ALPHA / 2 and of 0.8, added.
    const REACH: f64 = 1.959_964 + 0.841_621;
    /// Efficiency of the rank test beside the t test for normal runs: 3 / π.
    const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;
    const MOST: f64 = 1e6;
    let logarithms =
        |side: &[f64]| variance(&side.iter().map(|value| value.ln()).collect::<Vec<_>>());
    let pooled = mean(&[logarithms(a), logarithms(b)]);
    // How far from its border the estimate lies. Right at the border that is 0, but the estimate itself is uncertain and will
    // move: half the minimum effect is then planned for.
    let target = if distance >= effect {
        distance
    } else {
        (effect - distance).max(effect / 2.0)
    };
    let wanted = (2.0 * pooled * (REACH / target).powi(2) / EFFICIENCY).ceil();
    // Without a minimum effect and without any difference no number of runs is enough; so too if the target is beyond reach.
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

    fn word(a: &[f64], b: &[f64]) -> Word {
        judge(a, b, &Rule::default()).unwrap().word
    }

    const BEFORE: [f64; 5] = [1005918.0, 1006319.0, 1009119.0, 1013143.0, 1009155.0];
    const AFTER: [f64; 5] = [3548585.0, 3548786.0, 3552085.0, 3552502.0, 3552587.0];

    #[test]
    fn seed_000_is_faster() {
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
        // The same difference is one, if smaller effects are declared to matter.
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
        // Deviation 5 %, difference 4 %: 2 · 0.05² · (2.8 / 0.0392)² · π / 3 ≈ 27 of each, so some 22 more than 5.
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

    #[test]
    fn bad_runs_are_refused() {
        let error = |a: &[f64], b: &[f64]| judge(a, b, &Rule::default()).unwrap_err().to_string();
        assert_eq!(
            error(&[1.0], &BEFORE),
            "A has 1 run(s); at least 2 are needed"
        );
        assert_eq!(
            error(&BEFORE, &[1.0, 0.0]),
            "run 2 of B gave 0, which is not a positive number"
        );
        assert_eq!(
            error(&BEFORE, &[f64::NAN, 1.0]),
            "run 1 of B gave NaN, which is not a positive number"
        );
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

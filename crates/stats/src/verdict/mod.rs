//! The verdict if B is faster than A, from interleaved runs.
//!
//! The unit is the *run* (its mean), never the sample within a run: samples of one run are not
//! independent, and comparing samples finds a program different from itself in a quarter of the
//! trials. Runs of A and B must be *interleaved* (A B A B …); otherwise a drifting machine looks
//! like a difference. [`self_test`] measures both claims on the machine at hand.
//!
//! The decision, with the ratio r = B / A (see [`hodges_lehmann`]), its 95 % interval, the
//! [`mann_whitney`] test and a minimum effect (1 % by default, as a factor either way):
//!
//! | the interval … | and the estimate … | word |
//! |---|---|---|
//! | excludes 1, and the test is significant | reaches the minimum effect | `faster` or `slower` |
//! | lies entirely within the minimum effect | | `no difference shown` |
//! | otherwise | | `inconclusive (need about k more runs)` |
//!
//! So "no difference shown" is a finding (the difference, if any, is below the minimum effect) and
//! never a lack of data. Deciding again after every few runs and stopping at the first pleasing
//! word raises false alarms above 5 %: add all of the `k` runs at once.

mod judge;
mod rank;
mod ratio;
mod self_test;
mod welch;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Exit;
use crate::format::{general, ratio as shown_ratio};

pub use judge::judge;
pub use rank::{EXACT, RankTest, attained_level, mann_whitney};
pub use ratio::{Ratio, bootstrap_of_means, hodges_lehmann};
pub use self_test::{Plan, Rate, SelfTest, self_test, self_test_of, wilson};
pub use welch::{Welch, welch};

/// Two-sided level of every test and interval here.
pub const ALPHA: f64 = 0.05;

/// The smallest difference that matters between runs, unless the user says another: 1 %.
pub const MINIMUM_EFFECT: f64 = 0.01;
/// The smallest difference that matters between simulated runs: the model's rankings hold from 1.5
/// times apart on, and it cannot tell closer rates.
pub const SIMULATED_EFFECT: f64 = 0.5;

/// Which direction is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    /// Which direction is better.
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
            minimum_effect: MINIMUM_EFFECT,
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
    /// The runs do not decide.
    Inconclusive {
        /// About how many more runs per side would decide, in four cases of five.
        more_runs: usize,
    },
}

impl Word {
    /// The word alone.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifferenceShown => "no difference shown",
            Self::Inconclusive { .. } => "inconclusive",
        }
    }

    /// About how many more runs per side would decide; none if these do.
    pub const fn more_runs(self) -> Option<usize> {
        match self {
            Self::Inconclusive { more_runs } => Some(more_runs),
            _ => None,
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())?;
        match self.more_runs() {
            None => Ok(()),
            Some(1) => out.write_str(" (need about 1 more run)"),
            Some(more_runs) => write!(out, " (need about {more_runs} more runs)"),
        }
    }
}

/// The comparison of two series of runs. Displayed as one sentence, the word first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    pub word: Word,
    /// B / A, one ground of the word.
    pub ratio: Ratio,
    /// The rank test, the other ground.
    pub rank: RankTest,
    /// The ratio of means with its bootstrap interval, for reports that quote means.
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
    #[error("{side} needs at least 2 runs and has {runs}")]
    TooFew {
        /// `'A'` or `'B'`.
        side: char,
        /// The number of its runs.
        runs: usize,
    },
    /// A run without a positive result, which has no ratio to another.
    #[error("run {run} of {side} gave {}, which is {}", general(*value, 6), unusable(*value))]
    NotPositive {
        /// `'A'` or `'B'`.
        side: char,
        /// The run, counted from 1.
        run: usize,
        /// Its result.
        value: f64,
    },
    /// Two runs have no ratio, because it is beyond the largest number or the smallest.
    #[error(
        "runs of {low:e} and {high:e} cannot be compared: their ratio is beyond the range of \
         numbers"
    )]
    TooFarApart {
        /// The lowest run of one side.
        low: f64,
        /// The highest of the other.
        high: f64,
    },
    /// The minimum effect is not a share.
    #[error("expected a minimum effect of 0 or more, e.g. 0.01 for 1 %, found {0}")]
    MinimumEffect(f64),
}

impl Verdict {
    /// The exit code: equal or better is success.
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
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(shown_ratio);
    if ratio.is_bounded() {
        format!("{estimate} [{low}, {high}]")
    } else {
        format!("{estimate} [too few runs for an interval]")
    }
}

/// Why a run's result has no ratio to another.
fn unusable(value: f64) -> &'static str {
    if value > 0.0 && value.is_finite() {
        "too close to 0 to be compared"
    } else {
        "not a positive number"
    }
}

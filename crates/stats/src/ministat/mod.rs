//! The report of Poul-Henning Kamp's `ministat`, in its words.
//!
//! A table of N, minimum, maximum, median, mean and deviation, a dot plot, and the difference of
//! each sample from the first by Student's t: the form of case study 000's results. Text and
//! figures match FreeBSD's current ministat. It treats every number as an independent measurement
//! with the same variance on both sides. Samples of one run are not that (a program compared with
//! itself differs in a quarter of the trials), so the verdict comes from
//! [`verdict`](crate::verdict).

mod dataset;
mod difference;
mod moments;
mod plot;
mod student;

use crate::format::figure;

pub use dataset::{Column, Dataset, FEWEST};
pub use difference::{Confidence, Difference, UnknownConfidence};
pub use moments::{mean, stddev, variance};
pub(crate) use moments::{median, scale, scaled};
pub use plot::Plot;

/// The marks of the samples, in order.
const SYMBOLS: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];

/// Most samples in a report: there are no more marks.
pub const MOST: usize = SYMBOLS.len();

/// The parts of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The level at which the samples are compared with the first; `None` (ministat's `-n`) does
    /// not compare.
    pub confidence: Option<Confidence>,
    /// The plot; `None` (ministat's `-A` and `-n`) omits it.
    pub plot: Option<Plot>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            confidence: Some(Confidence::default()),
            plot: Some(Plot::default()),
        }
    }
}

/// More samples than there are marks, or none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} samples; expected 1 to {MOST}")]
pub struct Count(usize);

/// The report on `sets`, the first of them the base, as ministat prints it.
pub fn report(sets: &[Dataset], options: &Options) -> Result<String, Count> {
    let Some(base) = sets.first().filter(|_| sets.len() <= MOST) else {
        return Err(Count(sets.len()));
    };
    let mut text = String::new();
    for (symbol, set) in SYMBOLS.iter().zip(sets) {
        text += &format!("{symbol} {}\n", set.name());
    }
    if let Some(plot) = options.plot {
        text += &plot.draw(sets);
    }
    text += "    N           Min           Max        Median           Avg        Stddev\n";
    for (index, set) in sets.iter().enumerate() {
        text += &row(SYMBOLS[index], set);
        if let Some(confidence) = options.confidence.filter(|_| index > 0) {
            text += &Difference::between(base, set, confidence).to_string();
        }
    }
    Ok(text)
}

fn row(symbol: char, set: &Dataset) -> String {
    let [min, max, median, mean, stddev] =
        [set.min(), set.max(), set.median(), set.mean(), set.stddev()]
            .map(|value| figure(value, 8));
    format!(
        "{symbol} {:3} {min:>13} {max:>13} {median:>13} {mean:>13} {stddev:>13}\n",
        set.points().len()
    )
}

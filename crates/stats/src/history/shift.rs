//! Changes of level in a series.

use super::line::between;
use super::{Kept, Series};
use crate::change::{Change, Options, changes};
use crate::environment::Difference;

/// A change of level and its circumstances.
#[derive(Clone, Debug)]
pub struct Shift<'a> {
    /// The change; its index counts the series' runs.
    pub change: Change,
    /// The first run of the new level.
    pub run: &'a Kept,
    /// True if the previous run has the same label: then the machine changed and not the measured
    /// version.
    pub within_label: bool,
    /// How the machine differs from that of the previous run.
    pub differences: Vec<Difference>,
}

impl Series {
    /// The changes of level of the runs' means, ascending. Repeating a simulated run adds no
    /// evidence, so of those with equal label and seed only the last counts.
    pub fn shifts(&self, options: &Options) -> Vec<Shift<'_>> {
        let repeated = |index: usize, run: &Kept| {
            let later = &self.runs[index + 1..];
            self.key.simulated()
                && later
                    .iter()
                    .any(|other| (&other.label, other.seed) == (&run.label, run.seed))
        };
        let counted = self.runs.iter().enumerate();
        let counted: Vec<(usize, &Kept)> = counted
            .filter(|&(index, run)| !repeated(index, run))
            .collect();
        let figures: Vec<f64> = counted.iter().map(|(_, run)| run.figure).collect();
        changes(&figures, options)
            .into_iter()
            .map(|change| {
                let (before, (at, run)) = (counted[change.at - 1].1, counted[change.at]);
                Shift {
                    change: Change { at, ..change },
                    run,
                    within_label: before.label == run.label,
                    differences: between(Some(before), Some(run)),
                }
            })
            .collect()
    }
}

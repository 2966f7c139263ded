//! One label of a series, and its comparison with the previous label.

use std::collections::BTreeMap;

use super::{Kept, Series};
use crate::Time;
use crate::environment::Difference;
use crate::interval::{Median, of_median};
use crate::verdict::{ALPHA, Rule, RunsError, Verdict, judge};

/// All runs of one label.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    pub label: &'a str,
    /// The runs, in order of time.
    pub runs: &'a [Kept],
    /// When the first ended.
    pub first: Option<Time>,
    /// When the last ended.
    pub last: Option<Time>,
    /// Their median and its 95 % interval, or the closest attainable one.
    pub median: Median,
    /// The basis of the median.
    pub of: Of,
    /// The comparison with the previous label.
    pub change: Option<Against<'a>>,
}

/// The values that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The figures of several runs.
    Runs(usize),
    /// The samples of a single run, which share its luck: they do not tell how far another run may
    /// lie.
    Samples(usize),
    /// Simulated samples, each with a machine and a seed of its own: equivalent to runs.
    Seeds(usize),
}

/// A comparison with the previous label.
#[derive(Clone, Debug)]
pub struct Against<'a> {
    /// The previous label.
    pub label: &'a str,
    /// The judgement, or why it is impossible.
    pub verdict: Result<Verdict, RunsError>,
    /// The median relative to the previous one.
    pub ratio: f64,
    /// True if the runs of the two labels took turns; if not, a drift of the machine looks like a
    /// change.
    pub in_turn: bool,
    /// Other differences: between the machines of the last run before and the first one now.
    pub differences: Vec<Difference>,
}

impl Series {
    /// A line for each label, in order.
    pub fn lines(&self, rule: &Rule) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        let mut before: Option<Vec<f64>> = None;
        for runs in self.runs.chunk_by(|a, b| a.label == b.label) {
            let independent = self.independent(runs);
            let (numbers, of) = match runs {
                _ if self.key.simulated() => (independent.clone(), Of::Seeds(independent.len())),
                [one] if one.samples.len() > 1 => {
                    (one.samples.clone(), Of::Samples(one.samples.len()))
                }
                several => (independent.clone(), Of::Runs(several.len())),
            };
            let Some(median) = of_median(&numbers, 1.0 - ALPHA) else {
                continue;
            };
            let times = || runs.iter().filter_map(|run| run.time);
            let mut line = Line {
                label: &runs[0].label,
                runs,
                first: times().min(),
                last: times().max(),
                median,
                of,
                change: None,
            };
            if let (Some(last), Some(before)) = (lines.last(), &before) {
                line.change = Some(Against {
                    label: last.label,
                    verdict: judge(before, &independent, rule),
                    // Two that did nothing are equal.
                    ratio: if median.median == last.median.median {
                        1.0
                    } else {
                        median.median / last.median.median
                    },
                    in_turn: last.last > line.first && line.first.is_some(),
                    differences: between(last.runs.last(), runs.first()),
                });
            }
            lines.push(line);
            before = Some(independent);
        }
        lines
    }

    /// The values that count: a run's mean, because its samples share its luck; of simulated runs
    /// every sample, but each seed only once, because it always gives the same result.
    fn independent(&self, runs: &[Kept]) -> Vec<f64> {
        if !self.key.simulated() {
            return runs.iter().map(|run| run.figure).collect();
        }
        let mut by_seed = BTreeMap::new();
        let mut without = Vec::new();
        for run in runs {
            match run.seed {
                Some(first) => by_seed.extend(
                    (0..)
                        .zip(&run.samples)
                        .map(|(index, &sample)| (first.saturating_add(index), sample)),
                ),
                None => without.extend(&run.samples),
            }
            if run.samples.is_empty() {
                without.push(run.figure);
            }
        }
        by_seed.into_values().chain(without).collect()
    }
}

/// The differences between the machines of two runs; none if one is unknown.
pub(super) fn between(before: Option<&Kept>, after: Option<&Kept>) -> Vec<Difference> {
    let (Some(before), Some(after)) = (before, after) else {
        return Vec::new();
    };
    match (&before.machine, &after.machine) {
        (Some(before), Some(after)) => after.differences(before),
        _ => Vec::new(),
    }
}

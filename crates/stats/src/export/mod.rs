//! Stored results in the formats of other tools.
//!
//! will-it-scale's and lkp's hold one curve, a workload on one system at several numbers of tasks, and one label of it; OpenMetrics
//! holds everything.

mod csv;
mod lkp;
mod openmetrics;

use crate::history::{Kept, Key, Series};
use crate::record::Mode;

pub use csv::csv;
pub use lkp::lkp;
pub use openmetrics::openmetrics;

/// One label's runs of one thing at several numbers of tasks.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    points: Vec<Point<'a>>,
}

/// The runs at one number of tasks of one kind.
#[derive(Clone, Debug)]
struct Point<'a> {
    key: &'a Key,
    runs: Vec<&'a Kept>,
}

/// Why series are no curve.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// There is nothing.
    #[error("no runs")]
    Empty,
    /// There is more than one.
    #[error("there are several curves; choose one of: {}", .0.join("; "))]
    Several(Vec<String>),
}

impl<'a> Curve<'a> {
    /// The curve that `series` are points of, with the runs of `label`, or if none is given of the label that ran last.
    pub fn of(series: &'a [Series], label: Option<&str>) -> Result<Self, CurveError> {
        let mut names: Vec<String> = series.iter().map(|one| name(&one.key)).collect();
        names.dedup();
        let mut curves = series.chunk_by(|a, b| a.key.same_curve(&b.key));
        if curves.next().is_some() && curves.next().is_some() {
            return Err(CurveError::Several(names));
        }
        let runs = series.iter().flat_map(|one| &one.runs);
        let latest = runs.max_by_key(|run| run.time);
        let label = label.or(latest.map(|run| run.label.as_str()));
        let labelled = |one: &'a Series| Point {
            key: &one.key,
            runs: one
                .runs
                .iter()
                .filter(|run| Some(run.label.as_str()) == label)
                .collect(),
        };
        let mut points: Vec<Point<'a>> = series.iter().map(labelled).collect();
        points.retain(|point| !point.runs.is_empty());
        points.sort_by_key(|point| point.key.tasks);
        match points.is_empty() {
            true => Err(CurveError::Empty),
            false => Ok(Self { points }),
        }
    }

    /// The label of its runs.
    pub fn label(&self) -> &'a str {
        &self.points[0].runs[0].label
    }

    /// The numbers of tasks, ascending and each once.
    fn tasks(&self) -> Vec<u32> {
        let mut tasks: Vec<u32> = self.points.iter().map(|point| point.key.tasks).collect();
        tasks.dedup();
        tasks
    }

    /// The runs at a number of tasks.
    fn runs(&self, tasks: u32, mode: Mode) -> &[&'a Kept] {
        let point = self
            .points
            .iter()
            .find(|point| (point.key.tasks, point.key.mode) == (tasks, mode));
        point.map_or(&[], |point| &point.runs)
    }
}

fn name(key: &Key) -> String {
    let system = key.vm.as_deref().unwrap_or(&key.on);
    format!(
        "{} on {} ({}, {})",
        key.workload, system, key.on, key.machine
    )
}

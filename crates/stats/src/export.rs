//! Stored results in another tool's format: the table that will-it-scale's `runtest.py` prints and
//! its `postprocess.py` draws.
//!
//! A table holds one curve: a workload on one system at several numbers of tasks, under one label.

use crate::history::{Kept, Key, Series};
use crate::interval::of_median;
use crate::record::Mode;

const HEADER: &str =
    "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n";

/// The runs of one label at several numbers of tasks.
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

/// Why series form no curve.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// There are no runs.
    #[error("no runs")]
    Empty,
    /// There is more than one curve.
    #[error("several curves found; choose one of: {}", .0.join("; "))]
    Several(Vec<String>),
}

impl<'a> Curve<'a> {
    /// The curve that `series` form, from the runs of `label`, or by default of the label that ran
    /// last.
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
        if points.is_empty() {
            Err(CurveError::Empty)
        } else {
            Ok(Self { points })
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

/// The curve's medians. Unknown cells stay empty, the idle columns always: idle time is not
/// measured. `linear` is the better single task's rate times the number of tasks, or 0 if no single
/// task was measured.
pub fn csv(curve: &Curve<'_>) -> String {
    let rate = |tasks, mode| {
        let figures: Vec<f64> = curve
            .runs(tasks, mode)
            .iter()
            .map(|run| run.figure)
            .collect();
        of_median(&figures, 0.0).map(|found| found.median)
    };
    let single = Mode::BOTH.map(|mode| rate(1, mode).unwrap_or(0.0));
    let linear = single[0].max(single[1]);
    let cell = |rate: Option<f64>| rate.map_or(String::new(), |rate| format!("{rate:.0}"));
    let row = |tasks: u32| {
        let [processes, threads] = Mode::BOTH.map(|mode| cell(rate(tasks, mode)));
        let linear = linear * f64::from(tasks);
        format!("{tasks},{processes},,{threads},,{linear:.0}\n")
    };
    let rows: String = curve.tasks().into_iter().map(row).collect();
    format!("{HEADER}{rows}")
}

fn name(key: &Key) -> String {
    let system = key.vm.as_deref().unwrap_or(&key.on);
    format!(
        "{} on {} ({}, {})",
        key.workload, system, key.on, key.machine
    )
}

//! The table that will-it-scale's `runtest.py` prints and its `postprocess.py` draws.

use super::Curve;
use crate::interval::of_median;
use crate::record::Mode;

const HEADER: &str =
    "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n";

/// The curve's medians. What is not known is left empty: the idle columns always, as idle time is not measured. `linear` is the
/// better single task's rate times the tasks, and 0 if no single task was measured, as lkp's runs have it.
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

//! Curves over the number of tasks, as a table, as a plot and in words.

use super::table::{align_right, with_header};
use super::{format, plot, shape, short};
use bench::Outcome;
use comfy_table::Table;

/// One curve.
pub struct Series {
    /// The system, or the preset of scalevm's VM.
    pub label: String,
    /// The points that were finished.
    pub points: Vec<Point>,
    /// True if each sample is a simulated machine of its own, whose median counts.
    pub simulated: bool,
}

/// One point of a curve.
pub struct Point {
    /// The number of tasks.
    pub tasks: usize,
    /// The measurement.
    pub outcome: Outcome,
}

impl Series {
    /// Tasks and operations a second, for drawing or judging.
    pub fn curve(&self) -> Vec<(usize, f64)> {
        let figure = |outcome: &Outcome| {
            if self.simulated {
                outcome.spread().map(|[_, median, _]| median)
            } else {
                outcome.average()
            }
        };
        self.points
            .iter()
            .filter_map(|point| Some((point.tasks, figure(&point.outcome)?)))
            .collect()
    }
}

/// Table, plot, and the curves' shapes.
pub fn print(series: &[Series]) {
    format::print(&table(series));
    print!("{}", plot::curves(series));
    for one in series {
        for line in shape::describe(&one.curve()) {
            println!("{}: {line}", one.label);
        }
    }
}

/// A row for each point.
fn table(series: &[Series]) -> Table {
    let simulated = series.iter().all(|one| one.simulated);
    let figures = if simulated {
        ["median", "low–high"]
    } else {
        ["average", "stddev"]
    };
    let mut table = with_header(["on", "tasks", figures[0], figures[1], "per task", "speedup"]);
    for one in series {
        let curve = one.curve();
        // Against one task's share of the first point, so 1, 2, 4 is linear.
        let base = curve.first().map(|&(tasks, rate)| rate / tasks as f64);
        for (point, &(tasks, rate)) in one.points.iter().zip(&curve) {
            let spread = if simulated {
                point
                    .outcome
                    .spread()
                    .map(|[low, _, high]| range(low, high))
            } else {
                point.outcome.stddev().map(short)
            };
            let speedup = base.filter(|&base| base > 0.0).map(|base| rate / base);
            table.add_row([
                one.label.clone(),
                tasks.to_string(),
                short(rate),
                spread.unwrap_or_else(|| "–".into()),
                short(rate / tasks as f64),
                speedup.map_or("–".into(), |speedup| format!("{speedup:.2}")),
            ]);
        }
    }
    align_right(&mut table, 1..);
    table
}

fn range(low: f64, high: f64) -> String {
    format!("{}–{}", short(low), short(high))
}

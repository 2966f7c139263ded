//! Curves over the number of tasks, as a table, as a plot and in words.

use super::table::{align_right, with_header};
use super::{format, plot, shape, short};
use bench::{Mode, Outcome};
use comfy_table::Table;

/// The part of linear from which a curve scales.
const SCALES: f64 = 0.9;

/// One curve.
pub struct Series {
    pub workload: &'static str,
    /// The tasks' kind.
    pub mode: Mode,
    /// The system, or the preset of scalevm's VM.
    pub label: &'static str,
    /// The points that were finished.
    pub points: Vec<Point>,
    /// True if each sample is a simulated machine of its own, whose median counts.
    pub simulated: bool,
}

/// One point of a curve.
pub struct Point {
    /// The number of tasks.
    pub tasks: usize,
    /// The rate that as many independent tasks would have, as a multiple of one task's.
    pub linear: f64,
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

/// Tables with a row for each curve, and what keeps each from being linear.
pub fn print_rates(counts: &[usize], series: &[Series]) {
    println!("Operations a second:");
    format::print_of("rate", &wide(counts, series, |_, rate| short(rate)));
    println!("Over one task's:");
    let ratio = |one: &Series, rate| {
        let ratio = one.alone().map(|alone| format!("{:.1}", rate / alone));
        ratio.unwrap_or_else(|| "–".into())
    };
    format::print_of("over one task's", &wide(counts, series, ratio));
    let is_curve = |one: &&Series| one.points.len() > 1 && one.alone().is_some();
    for one in series.iter().filter(is_curve) {
        println!("{}", verdict(one));
    }
}

impl Series {
    /// The rate of one task, from the first point.
    fn alone(&self) -> Option<f64> {
        let (first, &(_, rate)) = (self.points.first()?, self.curve().first()?);
        (rate > 0.0).then(|| rate / first.linear)
    }

    /// The first point that is too low, and its part of linear.
    fn first_below(&self) -> Option<(&Point, f64)> {
        let (alone, curve) = (self.alone()?, self.curve());
        let parts = self.points.iter().zip(&curve);
        let mut parts = parts.map(|(point, (_, rate))| (point, rate / alone / point.linear));
        parts.find(|(_, part)| *part < SCALES)
    }
}

/// A curve's shape in a line.
fn verdict(one: &Series) -> String {
    let name = format!("{}, {}, {}", one.workload, one.mode.name(), one.label);
    let Some((point, part)) = one.first_below() else {
        return format!("- {name}: scales");
    };
    let why = point.outcome.bottleneck.as_ref();
    let why = why.map_or(String::new(), |bottleneck| format!(": {bottleneck}"));
    format!(
        "- {name}: {part:.2} of linear at {} tasks{why}",
        point.tasks
    )
}

/// A row for each curve, with a `cell` for the rate at each number of tasks.
fn wide(counts: &[usize], series: &[Series], cell: impl Fn(&Series, f64) -> String) -> Table {
    let names = ["workload", "tasks", "on"].map(str::to_owned);
    let mut table = with_header(names.into_iter().chain(counts.iter().map(usize::to_string)));
    for one in series {
        let names = [one.workload, one.mode.name(), one.label].map(str::to_owned);
        let curve = one.curve();
        let at = |tasks| curve.iter().find(|(at, _)| at == tasks);
        let cells = counts.iter().map(at);
        let cells = cells.map(|point| point.map_or("–".into(), |&(_, rate)| cell(one, rate)));
        table.add_row(names.into_iter().chain(cells));
    }
    align_right(&mut table, 3..);
    table
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
                one.label.to_owned(),
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

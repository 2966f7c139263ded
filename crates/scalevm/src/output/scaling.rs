//! How workloads scale, as tables of Markdown and as JSON.

use super::table::align_right;
use super::{format, short};
use baselines::Preset;
use bench::Mode;
use bench::simulated::BANDS;
use comfy_table::Table;
use serde_json::json;
use sim::profile::MachineProfile;
use stats::record::Subject;
use workloads::Workload;

/// The part of linear from which a curve scales.
const SCALES: f64 = 0.9;

/// A workload at several numbers of tasks.
#[derive(Clone)]
pub struct Row {
    pub workload: &'static Workload,
    /// The tasks' kind.
    pub mode: Mode,
    /// How the VM is built.
    pub vm: Preset,
    /// The finished points.
    pub points: Vec<Point>,
}

/// One run.
#[derive(Clone)]
pub struct Point {
    /// The number of tasks.
    pub tasks: usize,
    /// Operations a second.
    pub rate: f64,
    /// The rate that this number of independent tasks would have, as a multiple of one task's:
    /// threads that share a core are slower than one alone.
    pub linear: f64,
    /// The tasks' bottleneck.
    pub bottleneck: String,
}

impl Row {
    /// The point's rate over that of the first point's tasks, each alone.
    pub fn ratio(&self, point: &Point) -> Option<f64> {
        let first = self.points.first()?;
        (first.rate > 0.0).then(|| point.rate * first.linear / first.rate)
    }
}

/// Prints rates, ratios, and bottlenecks.
pub fn print(profile: &MachineProfile, counts: &[usize], rows: &[Row]) {
    println!("Operations a second on {}:\n", profile.name);
    let rate = |_: &Row, point: &Point| Some(short(point.rate));
    show("rate", &table(counts, rows, rate));
    println!("Over one task's:\n");
    let ratio = |row: &Row, point: &Point| row.ratio(point).map(|ratio| format!("{ratio:.1}"));
    println!();
    show("over one task's", &table(counts, rows, ratio));
    println!();
    for row in rows {
        let name = format!("{}, {}, {}", row.workload.name, row.mode.name(), row.vm);
        match first_below(row) {
            None => println!("- {name}: scales"),
            Some((point, part)) => println!(
                "- {name}: {part:.2} of linear at {} tasks: {}",
                point.tasks, point.bottleneck
            ),
        }
    }
    println!("\n{BANDS}");
}

/// Prints one of the tables, of Markdown for people, too.
fn show(what: &str, table: &Table) {
    if format::is_text() {
        println!("{}", format::markdown(table))
    } else {
        format::print_of(what, table)
    }
}

/// The first point that is too low, and its part of linear.
fn first_below(row: &Row) -> Option<(&Point, f64)> {
    let parts = row
        .points
        .iter()
        .filter_map(|point| Some((point, row.ratio(point)? / point.linear)));
    parts.into_iter().find(|(_, part)| *part < SCALES)
}

fn table(counts: &[usize], rows: &[Row], cell: impl Fn(&Row, &Point) -> Option<String>) -> Table {
    let mut table = Table::new();
    let names = ["workload", "tasks", "VM"].map(str::to_owned).into_iter();
    let counts_as_text = counts.iter().map(ToString::to_string);
    table.set_header(names.chain(counts_as_text));
    for row in rows {
        let names = [row.workload.name, row.mode.name(), row.vm.name].map(str::to_owned);
        let at = |tasks: &usize| row.points.iter().find(|point| point.tasks == *tasks);
        let cells = counts
            .iter()
            .map(|tasks| at(tasks).and_then(|point| cell(row, point)));
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "–".into()));
        table.add_row(names.into_iter().chain(cells));
    }
    align_right(&mut table, 3..);
    table
}

/// Prints a point as an object of JSON.
pub fn print_json(subject: &Subject, row: &Row, point: &Point) {
    let mut line = json!(subject);
    line["kind"] = json!("scaling");
    line["rate"] = json!(point.rate);
    line["linear"] = json!(point.linear);
    // The first point is not in the row yet.
    line["ratio"] = json!(row.ratio(point).unwrap_or(point.linear));
    line["bottleneck"] = json!(point.bottleneck);
    println!("{line}");
}

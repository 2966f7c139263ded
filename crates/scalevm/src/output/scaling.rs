//! How workloads scale, as tables of Markdown and as JSON.

use super::short;
use super::table::align_right;
use crate::commands::scaling::{Point, Row};
use crate::simulated::BANDS;
use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use serde_json::json;
use sim::profile::Profile;
use stats::record::Subject;

/// What scales: at least this part of linear.
const SCALES: f64 = 0.9;

/// Prints rates, ratios, and what is in the way.
pub fn print(profile: &Profile, counts: &[usize], rows: &[Row]) {
    println!("Operations a second on {}:\n", profile.name);
    println!(
        "{}\n",
        table(counts, rows, |_, point| Some(short(point.rate)))
    );
    println!("Over one task's:\n");
    let ratio = |row: &Row, point: &Point| row.ratio(point).map(|ratio| format!("{ratio:.1}"));
    println!("{}\n", table(counts, rows, ratio));
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

/// The first point that is too low, and what part of linear it is.
fn first_below(row: &Row) -> Option<(&Point, f64)> {
    let parts = row
        .points
        .iter()
        .filter_map(|point| Some((point, row.ratio(point)? / point.linear)));
    parts.into_iter().find(|(_, part)| *part < SCALES)
}

fn table(counts: &[usize], rows: &[Row], cell: impl Fn(&Row, &Point) -> Option<String>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    let names = ["workload", "tasks", "VM"].map(str::to_owned).into_iter();
    let counts_as_text = counts.iter().map(ToString::to_string);
    table.set_header(names.chain(counts_as_text));
    for row in rows {
        let names = [row.workload.name, row.mode.name(), &row.vm].map(str::to_owned);
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

//! Locks on the simulated machine, as a table and as JSON.

use super::plot::Curve;
use super::table::{align_right, with_header};
use comfy_table::Table;
use lockbench::Row;
use lockbench::simulated::{Load, Point};
use serde_json::{Value, json};
use sim::profile::MachineProfile;
use std::ops::Range;

/// The figures of one lock.
pub struct Figures {
    /// The lock.
    pub row: &'static Row,
    /// Nanoseconds of an operation of one CPU, nothing inside.
    pub alone: f64,
    /// What its CPUs did.
    pub load: Load,
    /// The curve, as far as it was finished.
    pub points: Vec<Point>,
}

impl Figures {
    /// The part of the peak that is left at the last point.
    pub fn kept(&self) -> Option<f64> {
        let rates = || self.points.iter().map(|point| point.throughput.median);
        let peak = rates().fold(0.0, f64::max);
        Some(rates().next_back()? / peak)
    }

    /// For a plot.
    pub fn curve(&self) -> Curve {
        let points = self.points.iter();
        Curve {
            label: self.row.name.to_owned(),
            points: points
                .map(|point| (point.cpus, point.throughput.median))
                .collect(),
        }
    }
}

/// A row for each lock: the median over the range at each number of CPUs; the part kept of
/// the peak, and fairness, at the last.
pub fn table(figures: &[Figures], counts: &[usize]) -> Table {
    let mut header = vec!["lock".to_owned(), "bytes".into(), "ns".into()];
    header.extend(counts.iter().map(|cpus| format!("×{cpus}")));
    header.extend(["kept".into(), "min/max".into(), "Jain".into()]);
    let mut table = with_header(header);
    for one in figures {
        let none = || "–".to_owned();
        let bytes = one.row.bytes.map_or_else(none, |bytes| bytes.to_string());
        let mut cells = vec![one.row.name.to_owned(), bytes, format!("{:.1}", one.alone)];
        cells.extend((0..counts.len()).map(|at| one.points.get(at).map_or_else(none, rate)));
        let last = one.points.last();
        cells.push(
            one.kept()
                .map_or_else(none, |kept| format!("{:.0} %", 100.0 * kept)),
        );
        cells.push(last.map_or_else(none, |point| format!("{:.2}", point.fairness.extremes)));
        cells.push(last.map_or_else(none, |point| format!("{:.3}", point.fairness.jain)));
        table.add_row(cells);
    }
    align_right(&mut table, 1..);
    table
}

/// Millions: the median, and below it the range.
fn rate(point: &Point) -> String {
    let [median, low, high] = [
        point.throughput.median,
        point.throughput.low,
        point.throughput.high,
    ]
    .map(|rate| format!("{:.2}", rate / 1e6));
    format!("{median}\n{low}–{high}")
}

/// Prints one lock as one JSON object.
pub fn print_json(figures: &Figures, profile: &MachineProfile, seeds: &Range<u64>) {
    let Figures { row, load, .. } = figures;
    let contended: Vec<Value> = figures.points.iter().map(contended).collect();
    let line = json!({
        "kind": "lock",
        "on": "sim",
        "machine": profile.name,
        "seed": seeds.start,
        "seeds": seeds.end - seeds.start,
        "lines": load.lines,
        "section_ns": load.section,
        "private_ns": load.private,
        "times": load.times,
        "place": load.place.name(),
        "disturbed": load.disturbed,
        "name": row.name,
        "about": row.about,
        "group": row.group.name(),
        "ours": row.ours,
        "bytes": row.bytes,
        "uncontended_ns": figures.alone,
        "contended": contended,
        "topology": profile.topology.shape(),
        "unit": "operations/s",
    });
    println!("{line}");
}

fn contended(point: &Point) -> Value {
    json!({
        "threads": point.cpus,
        "ops_per_second": point.throughput.median,
        "low": point.throughput.low,
        "high": point.throughput.high,
        "min": point.per_cpu.0,
        "max": point.per_cpu.1,
        "fairness": point.fairness.extremes,
        "jain": point.fairness.jain,
        "operations": point.operations,
        "seconds": point.seconds,
    })
}

//! Figures of locks as JSON, one object a line.

use bench::tasks::places;
use lockbench::Figures;
use serde::Serialize;

/// One lock, one line.
#[derive(Serialize)]
struct Lock<'a> {
    kind: &'static str,
    name: &'static str,
    about: &'static str,
    group: &'static str,
    ours: bool,
    /// Null for a row that is not one object.
    bytes: Option<usize>,
    uncontended_ns: Option<f64>,
    contended: Vec<Contended>,
    topology: Option<&'a str>,
    unit: &'static str,
}

#[derive(Serialize)]
struct Contended {
    threads: usize,
    /// Of all threads: median of rounds.
    ops_per_second: f64,
    /// Of the slowest and the fastest thread.
    min: f64,
    max: f64,
    /// In all rounds.
    operations: u64,
    seconds: f64,
    slow_lock: Option<u64>,
    slow_unlock: Option<u64>,
}

/// Prints the figures of a lock.
pub fn print(figures: &Figures) {
    let contended = figures.contended.iter().map(|contended| Contended {
        threads: contended.threads,
        ops_per_second: contended.rate,
        min: contended.min,
        max: contended.max,
        operations: contended.operations,
        seconds: contended.seconds,
        slow_lock: contended.slow_paths.map(|slow| slow.slow_lock),
        slow_unlock: contended.slow_paths.map(|slow| slow.slow_unlock),
    });
    let topology = places::cores().ok().map(|cores| places::shape(&cores));
    let row = figures.row;
    let record = Lock {
        kind: "lock",
        name: row.name,
        about: row.about,
        group: row.group.name(),
        ours: row.ours,
        bytes: row.bytes,
        uncontended_ns: figures.alone,
        contended: contended.collect(),
        topology: topology.as_deref(),
        unit: "operations/s",
    };
    let line = serde_json::to_string(&record).expect("numbers and strings always serialize");
    println!("{line}");
}

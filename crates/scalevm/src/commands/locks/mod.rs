//! `scalevm locks`: the lock micro-benchmark.

mod simulated;

use crate::cli::{LocksArgs, LocksOn};
use crate::output::progress::Progress;
use crate::output::{format, lock_json, table};
use bench::tasks::places::{self, Affinity};
use bench::{Failure, Mode};
use lockbench::registry::ROWS;
use lockbench::{Row, measure, turns};
use stats::count;
use std::time::Duration;

/// Default numbers of threads.
const COUNTS: [usize; 4] = [1, 2, 4, 8];
/// Default duration.
const DURATION: Duration = Duration::from_millis(300);

/// Measures and shows.
pub fn run(args: &LocksArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let rows = chosen(&args.only);
    match args.on() {
        LocksOn::Hosted => hosted(args, &rows),
        LocksOn::Sim => simulated::run(args, &rows),
    }
}

/// The rows that `names` stand for, in the registry's order; all if there are none.
fn chosen(names: &[String]) -> Vec<&'static Row> {
    let named = |row: &&Row| {
        let mut names = names.iter();
        names.any(|name| name == row.name || name == row.group.name())
    };
    let rows = ROWS.iter();
    rows.filter(|row| names.is_empty() || named(row)).collect()
}

/// Measures on threads of this process, and shows.
fn hosted(args: &LocksArgs, rows: &[&'static Row]) -> Result<u8, Failure> {
    super::simulated_only(args.sim.given().or(args.load.given()), false)?;
    let mut counts = args.counts();
    if counts.is_empty() {
        counts = COUNTS.into();
    }
    super::prepare()?;
    let places = places::places(Affinity::Cpus).map_err(Failure::start("CPU affinity"))?;
    let progress = Progress::new(turns(counts.len()) * rows.len() as u64, "turns");
    let duration = args.duration.unwrap_or(DURATION);
    let result = measure(rows, &counts, duration, &places, |step| {
        progress.point(&format!(
            "{}, {}",
            step.row.name,
            Mode::Threads.count(step.threads)
        ));
        progress.step();
    });
    progress.finish();
    let figures = result?;
    if args.json {
        for figures in &figures {
            lock_json::print(figures);
        }
    } else {
        println!(
            "ns: one thread, nothing inside; ×n: operations a second of n threads on {}, \
             two writes inside",
            count(places.len(), "CPU")
        );
        format::print(&table::locks(&figures, &counts));
    }
    Ok(super::finished())
}

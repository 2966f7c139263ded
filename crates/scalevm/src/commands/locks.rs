//! `scalevm locks`: the lock micro-benchmark.

use crate::cli::LocksArgs;
use crate::harness::Failure;
use crate::locks::registry::ROWS;
use crate::locks::{Row, measure, turns};
use crate::output::progress::Progress;
use crate::output::{lock_json, table};
use crate::tasks::places::{self, Affinity};

/// Measures and shows.
pub fn run(args: &LocksArgs) -> Result<u8, Failure> {
    let rows = chosen(&args.only);
    let mut counts: Vec<usize> = args.threads.iter().map(|&count| count as usize).collect();
    counts.sort_unstable();
    counts.dedup();
    super::prepare()?;
    let places = places::places(Affinity::Cpus).map_err(Failure::start("CPU affinity"))?;
    let progress = Progress::new(turns(counts.len()) * rows.len() as u64, "turns");
    let result = measure(&rows, &counts, args.duration, &places, |step| {
        progress.point(&format!("{}, {} threads", step.row.name, step.threads));
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
            "ns: one thread, nothing inside; ×n: operations a second of n threads on {} CPUs, \
             two writes inside",
            places.len()
        );
        println!("{}", table::locks(&figures, &counts));
    }
    Ok(super::finished())
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

//! The locks on threads of this process.

use crate::cli::LocksArgs;
use crate::commands::{finished, prepare};
use crate::harness::Failure;
use crate::locks::{Row, measure, turns};
use crate::output::progress::Progress;
use crate::output::{lock_json, table};
use crate::tasks::places::{self, Affinity};
use std::time::Duration;

/// Numbers of threads, unless others are asked for.
const COUNTS: [usize; 4] = [1, 2, 4, 8];
/// How long, unless another time is asked for.
const DURATION: Duration = Duration::from_millis(300);

/// Measures and shows.
pub fn run(args: &LocksArgs, rows: &[&'static Row]) -> Result<u8, Failure> {
    if args.sim.is_chosen() || args.sim.seeds.is_some() {
        let why = "--machine, --topology and --seeds are the simulated machine's: they go with \
                   --on sim";
        return Err(Failure::Unavailable(why.into()));
    }
    let mut counts = args.counts();
    if counts.is_empty() {
        counts = COUNTS.into();
    }
    prepare()?;
    let places = places::places(Affinity::Cpus).map_err(Failure::start("CPU affinity"))?;
    let progress = Progress::new(turns(counts.len()) * rows.len() as u64, "turns");
    let duration = args.duration.unwrap_or(DURATION);
    let result = measure(rows, &counts, duration, &places, |step| {
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
    Ok(finished())
}

//! Sequence by sequence, until something differs.

use super::Found;
use super::report::Report;
use crate::cli::SequencesArgs;
use crate::harness::interrupt;
use crate::output::progress::Progress;
use oracle::check::{Played, play, sequence_for};
use oracle::{Broken, System};
use std::time::{Duration, Instant};

/// Operations compared if nothing is said.
const STEPS: u64 = 100_000;
/// How often a difference is looked for again, before it counts as one that the kernel shows
/// only now and then.
const AGAIN: usize = 3;

/// The first difference that shows again; others are counted.
pub fn search(
    args: &SequencesArgs,
    seconds: Option<u64>,
    systems: &mut [&mut dyn System],
    report: &mut Report,
) -> Result<Option<Found>, Broken> {
    let enough = if seconds.is_some() { u64::MAX } else { STEPS };
    let wanted = args.steps.unwrap_or(enough);
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let is_over = || end.is_some_and(|end| Instant::now() >= end) || interrupt::pending().is_some();
    let progress = Progress::new(wanted, "operations");
    let mut found = None;
    let mut seed = args.seed.unwrap_or(0);
    while report.compared() < wanted && !is_over() && found.is_none() {
        let steps = sequence_for(seed, length(seed), systems);
        match play(&steps, systems)? {
            Ok(played) => report.played(played),
            Err(first) => {
                report.played(Played::default());
                for _ in 0..AGAIN {
                    if let Err(again) = play(&steps, systems)? {
                        found = Some((seed, again));
                        break;
                    }
                }
                if found.is_none() {
                    progress.aside(|| report.passing(seed, &first));
                }
            }
        }
        progress.at(report.compared());
        seed += 1;
    }
    progress.finish();
    Ok(found)
}

/// Steps of the sequence with this seed: 30 to 200.
fn length(seed: u64) -> usize {
    30 + (seed % 171) as usize
}

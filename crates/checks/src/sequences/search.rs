//! A search for a difference, sequence by sequence.

use super::Found;
use bench::interrupt;
use oracle::check::{Divergence, Played, play, sequence_for, shrink};
use oracle::{Broken, Step, System};
use std::time::{Duration, Instant};

/// Operations that are compared by default.
const STEPS: u64 = 100_000;
/// How often to look for a difference again before it counts as one that the kernel shows only
/// sometimes.
const AGAIN: usize = 3;

/// The extent of a search.
pub struct Options {
    /// The first one's seed.
    pub first: u64,
    /// The least number of operations to compare.
    pub steps: Option<u64>,
    /// The number of seconds after which the search ends.
    pub seconds: Option<u64>,
}

impl Options {
    /// The number of operations to compare.
    pub fn wanted(&self) -> u64 {
        let enough = self.seconds.map_or(STEPS, |_| u64::MAX);
        self.steps.unwrap_or(enough)
    }
}

/// Is notified of a search's progress.
pub trait Watch {
    /// A sequence was played.
    fn played(&mut self, played: Played);

    /// A difference did not show again.
    fn passing(&mut self, seed: u64, found: &Divergence);
}

/// Returns the first difference that can be reproduced, shortened; reports others to `watch`. A
/// signal ends the search early.
///
/// # Errors
/// If a system cannot be used any more.
pub fn search(
    options: &Options,
    systems: &mut [&mut dyn System],
    watch: &mut dyn Watch,
) -> Result<Option<Found>, Broken> {
    super::prepare();
    let end = options
        .seconds
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let is_over = || end.is_some_and(|end| Instant::now() >= end) || interrupt::pending().is_some();
    let (mut seed, mut compared) = (options.first, 0);
    while compared < options.wanted() && !is_over() {
        let steps = sequence_for(seed, length(seed), systems);
        match play(&steps, systems)? {
            Ok(played) => {
                compared += played.compared;
                watch.played(played);
            }
            Err(first) => {
                watch.played(Played::default());
                let found = if first.hangs() {
                    Some(first.clone())
                } else {
                    again(&steps, systems)?
                };
                match found {
                    Some(found) => return Ok(Some((seed, shrink(found, systems)?))),
                    None => watch.passing(seed, &first),
                }
            }
        }
        seed += 1;
    }
    Ok(None)
}

/// Plays a sequence again, several times, until it shows a difference.
fn again(steps: &[Step], systems: &mut [&mut dyn System]) -> Result<Option<Divergence>, Broken> {
    for _ in 0..AGAIN {
        if let Err(found) = play(steps, systems)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Steps of the sequence with this seed: 30 to 200.
fn length(seed: u64) -> usize {
    30 + (seed % 171) as usize
}

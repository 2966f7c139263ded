//! Sequence by sequence, until something differs.

use super::Found;
use bench::interrupt;
use oracle::check::{Divergence, Played, play, sequence_for, shrink};
use oracle::{Broken, Step, System};
use std::time::{Duration, Instant};

/// Operations compared if nothing is said.
const STEPS: u64 = 100_000;
/// How often to look for a difference again, before it counts as one that the kernel shows only now
/// and then.
const AGAIN: usize = 3;

/// Which sequences.
pub struct Options {
    /// The first one's seed.
    pub first: u64,
    /// How many operations are compared at least.
    pub steps: Option<u64>,
    /// After how many seconds it is enough.
    pub seconds: Option<u64>,
}

impl Options {
    /// How many operations are compared.
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

/// The first difference that shows again, made short; others are reported to `watch`. A signal ends
/// it early.
///
/// # Errors
/// A system cannot be used any more.
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

/// The difference that a sequence shows again.
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

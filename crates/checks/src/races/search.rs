//! One scenario with many seeds, on all CPUs of this computer.

use super::play::Scenario;
use super::trial::{self, Failure};
use bench::Workers;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// Seeds tried.
    pub runs: u64,
    /// The number of runs whose jobs were preempted tasks.
    pub preempted: u64,
    /// The seeds that failed, and how.
    pub failures: BTreeMap<u64, Failure>,
}

/// Tries all of `seeds`; calls `done` after each. A signal ends it early. The order of locks is
/// checked.
pub fn search(scenario: &Scenario, seeds: Range<u64>, done: &(dyn Fn() + Sync)) -> Found {
    sync::watch::order::switch(true);
    let mut found = Found::default();
    let run = |seed| {
        let result = trial::run(scenario, seed);
        done();
        (trial::is_preempted(scenario, seed), result)
    };
    let Ok(()) = Workers::here(sim::MOST_MACHINES).run(seeds, run, |seed, (preempted, result)| {
        found.runs += 1;
        found.preempted += u64::from(preempted);
        found
            .failures
            .extend(result.err().map(|failure| (seed, failure)));
        Ok::<_, Infallible>(())
    });
    found
}

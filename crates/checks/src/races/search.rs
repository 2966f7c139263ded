//! One scenario with many seeds, on all CPUs of this computer.

use super::play::Scenario;
use super::trial::{self, Failure};
use bench::interrupt;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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
    let next = AtomicU64::new(seeds.start);
    let found = Mutex::new(Found::default());
    let work = || {
        while interrupt::pending().is_none() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let result = trial::run(scenario, seed);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.runs += 1;
            found.preempted += u64::from(trial::is_preempted(scenario, seed));
            if let Err(failure) = result {
                found.failures.insert(seed, failure);
            }
            drop(found);
            done();
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers.min((seeds.end - seeds.start) as usize) {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

//! Samples say which code took how much simulated time, and how.

use crate::support;

use machine::{AtomicInt, Ordering};
use sim::{SiteName, Spent, compute};
use std::hint::black_box;
use support::{Jobs, Line, finish, machine, profile, shared};

const ROUNDS: u64 = 2_000;

#[inline(never)]
fn computes_a_lot() {
    compute(900.0);
    black_box(());
}

#[inline(never)]
fn shares_a_line(line: &Line) {
    line.0.fetch_add(1, Ordering::Relaxed);
    black_box(());
}

/// Nanoseconds spent in a way below a function.
fn below(samples: &[sim::Sample], function: &str, spent: Spent) -> u64 {
    let is_below = |sample: &&sim::Sample| {
        let names = sample.stack.iter().copied().flat_map(SiteName::resolve);
        names
            .map(|name| name.function)
            .any(|name| name.contains(function))
    };
    let right = samples.iter().filter(|sample| sample.spent == spent);
    right
        .filter(is_below)
        .map(|sample| sample.nanoseconds)
        .sum()
}

fn run() -> (Vec<sim::Sample>, [u64; 2], u64) {
    let sim = machine(&profile("freebsd-96"), 0);
    let line = shared::<Line>(&sim);
    sim.sample(500);
    let jobs: Jobs = (0..2)
        .map(|cpu| {
            let line = line.clone();
            let job = move || {
                for _ in 0..ROUNDS {
                    computes_a_lot();
                    shares_a_line(&line);
                }
            };
            (24 * cpu, Box::new(job) as machine::Job)
        })
        .collect();
    finish(&sim, jobs);
    let fetching = [0, 24].map(|cpu| sim.times()[cpu].fetching / 1000);
    (sim.sampled(), fetching, sim.time())
}

#[test]
fn time_is_charged_to_the_code_that_took_it() {
    let (samples, fetching, end) = run();
    let all: u64 = samples.iter().map(|sample| sample.nanoseconds).sum();
    // For each way, less than a period of each CPU may not be charged yet.
    assert!(
        all <= 2 * end && all + 8 * 500 >= 2 * end,
        "{all} of 2 × {end}"
    );
    let waited = below(&samples, "shares_a_line", Spent::Fetching);
    let fetching: u64 = fetching.iter().sum();
    assert!(
        waited <= fetching && waited + 2 * 500 >= fetching,
        "{waited} of {fetching}"
    );
    assert!(fetching > 100_000, "the line moves: {fetching}");
    let worked = below(&samples, "computes_a_lot", Spent::Working);
    assert!(worked >= 2 * ROUNDS * 900 - 2 * 500, "{worked}");
}

#[test]
fn the_same_run_gives_the_same_samples() {
    let times = |samples: Vec<sim::Sample>| {
        let time = |sample: sim::Sample| (sample.spent, sample.line, sample.nanoseconds);
        samples.into_iter().map(time).collect::<Vec<_>>()
    };
    assert_eq!(times(run().0), times(run().0));
}

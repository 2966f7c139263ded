//! One line that all CPUs write, against published rates (docs/simulator/contended.md).

use crate::support;

use machine::{AtomicInt, Job};
use sim::Progress;
use sim::profile::MachineProfile;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use support::{Line, machine, profile, shared};

/// Nanoseconds until the queue has its length, and of the window that counts.
const WARMS_UP: u64 = 20_000;
const COUNTED: u64 = 100_000;
/// The most that a CPU takes between two increments, besides: no loop is so regular that CPUs
/// follow each other by their numbers.
const JITTER: u64 = 20;

/// Nanoseconds for an increment of one counter by CPUs that compute up to `between` in between.
fn increment(profile: &MachineProfile, cpus: usize, between: u64) -> f64 {
    let sim = machine(profile, 0);
    let line = shared::<Line>(&sim);
    let (done, stop) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let jobs = (0..cpus).map(|cpu| {
        let (line, done, stop) = (line.clone(), done.clone(), stop.clone());
        let job = move || {
            while !stop.load(Relaxed) {
                line.0.fetch_add(1, Relaxed);
                done.fetch_add(1, Relaxed);
                sim::compute(sim::dice(between + 1) as f64);
            }
        };
        (cpu, Box::new(job) as Job)
    });
    sim.start_on(jobs.collect());
    let begin = sim.time() + WARMS_UP;
    assert_eq!(sim.run(begin), Progress::Running);
    let before = done.load(Relaxed);
    assert_eq!(sim.run(begin + COUNTED), Progress::Running);
    let increments = done.load(Relaxed) - before;
    stop.store(true, Relaxed);
    assert_eq!(sim.run(u64::MAX / 4_000), Progress::Finished);
    COUNTED as f64 / increments as f64
}

/// Eight sockets of Skylake-SP, 28 cores of two threads each (perfbook, `count_atomic`, hps):
/// CPUs, and nanoseconds between two increments of any.
const SKYLAKE: [(usize, f64); 8] = [
    (2, 31.9),
    (8, 25.4),
    (16, 23.2),
    (28, 22.3),
    (64, 24.8),
    (112, 28.6),
    (224, 31.5),
    (420, 35.3),
];

/// The costs of `freebsd-96` in the shape of that machine.
fn skylake() -> MachineProfile {
    let reshaped = profile("freebsd-96").with_topology(8, 28, 2);
    reshaped.expect("a machine")
}

#[test]
fn a_shared_counter_has_the_rates_of_a_skylake() {
    let profile = skylake();
    for (cpus, measured) in SKYLAKE {
        let simulated = increment(&profile, cpus, JITTER);
        let rate = measured / simulated;
        assert!(
            (0.65..=1.35).contains(&rate),
            "{cpus} CPUs: {simulated:.1} ns, not {measured}"
        );
    }
}

/// A line takes as long from CPU to CPU whether they come back at once or much later: none of them
/// gets a second access in while others wait.
#[test]
fn a_contended_line_has_one_rate_however_soon_cpus_return() {
    let profile = skylake();
    let (soon, late) = (
        increment(&profile, 112, JITTER),
        increment(&profile, 112, 2_000),
    );
    assert!((0.8..=1.25).contains(&(late / soon)), "{soon} and {late}");
}

/// The step from CPU to CPU: an access and the third leg, with two CPUs or with a socket's.
#[test]
fn a_queued_line_moves_in_an_access_and_its_third_leg() {
    let profile = profile("freebsd-96");
    let access = profile.core.hit + profile.core.rmw;
    let data = profile.transfer.cluster as f64 * profile.transfer.legs[2];
    let expected = (access as f64 + data) / 1e3;
    for cpus in [2, 24] {
        let found = increment(&profile, cpus, 0);
        assert!((found - expected).abs() < 0.1, "{found}, not {expected}");
    }
}

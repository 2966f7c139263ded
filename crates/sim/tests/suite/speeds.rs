//! The speed of CPUs, by the other CPUs that work.

use crate::support;

use machine::{Clock, Job};
use sim::Sim;
use sim::profile::{Clocks, MachineProfile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use support::{finish, machine, profile};

const WORK: f64 = 1_000_000.0;

/// The speed of the CPUs while they all work, as a share of the profile's.
fn speeds(profile: &MachineProfile, cpus: &[usize]) -> Vec<f64> {
    let sim = machine(profile, 0);
    let spent: Arc<[AtomicU64]> = cpus.iter().map(|_| AtomicU64::new(0)).collect();
    let jobs = cpus.iter().enumerate().map(|(index, &cpu)| {
        let spent = spent.clone();
        let job = move || {
            let before = Sim::now();
            sim::compute(WORK);
            spent[index].store(Sim::now() - before, Relaxed);
        };
        (cpu, Box::new(job) as Job)
    });
    finish(&sim, jobs.collect());
    let speed = |spent: &AtomicU64| WORK / spent.load(Relaxed) as f64;
    spent.iter().map(speed).collect()
}

fn assert_speeds(profile: &MachineProfile, cpus: &[usize], expected: &[f64]) {
    let found = speeds(profile, cpus);
    let near = |(found, expected): (&f64, &f64)| (found - expected).abs() < 0.002;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(near),
        "CPUs {cpus:?}: {found:?}, not {expected:?}"
    );
}

/// freebsd-96 with clocks of 4, 3 and 2 GHz for up to 1, 3 and 24 cores.
fn clocked() -> MachineProfile {
    let mut profile = profile("freebsd-96");
    profile.core.clocks = Clocks(vec![(1, 4.0), (3, 3.0), (24, 2.0)]);
    profile.check().expect("sound");
    profile
}

#[test]
fn the_threads_of_a_core_share_it() {
    let profile = profile("freebsd-96");
    let smt = profile.core.smt;
    assert_speeds(&profile, &[0, 1, 49], &[1.0, smt, smt]);
}

#[test]
fn busy_cores_of_a_socket_slow_each_other_down() {
    let (profile, smt) = (clocked(), 0.62);
    assert_speeds(&profile, &[5], &[2.0]);
    // Between two rows.
    assert_speeds(&profile, &[0, 1], &[1.75; 2]);
    // Two cores, one with both of its threads; a core of the other socket.
    assert_speeds(
        &profile,
        &[0, 1, 49, 24],
        &[1.75, 1.75 * smt, 1.75 * smt, 2.0],
    );
    let all: Vec<usize> = (0..24).collect();
    assert_speeds(&profile, &all, &[1.0; 24]);
}

#[test]
fn clocks_beyond_the_rows_are_those_of_the_nearest() {
    let clocks = Clocks(vec![(2, 3.0), (4, 1.5)]);
    let speeds = [0, 1, 2, 3, 4, 5].map(|busy| clocks.speed(busy));
    assert_eq!(speeds, [2.0, 2.0, 2.0, 1.5, 1.0, 1.0]);
    assert_eq!(Clocks::default().speed(7), 1.0);
}

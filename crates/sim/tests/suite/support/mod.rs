//! Shared parts of the tests of simulated time.
#![allow(dead_code)] // each test takes its part

use machine::{Atomic, Atomics, Clock, Cpus, Job, Ordering};
use sim::profile::MachineProfile;
use sim::{Options, Progress, Sim};
use std::sync::Arc;

/// A word with a line of its own.
#[derive(Default)]
#[repr(align(64))]
pub struct Line(pub Word);

pub struct Word(<Sim as Atomics>::AtomicU64);

impl Default for Word {
    fn default() -> Self {
        Word(Atomic::new(0))
    }
}

impl std::ops::Deref for Word {
    type Target = <Sim as Atomics>::AtomicU64;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Jobs and their CPUs.
pub type Jobs = Vec<(usize, Job)>;

pub fn profile(name: &str) -> MachineProfile {
    MachineProfile::named(name).expect("built in")
}

pub fn machine(profile: &MachineProfile, seed: u64) -> Sim {
    let options = Options {
        seed,
        ..Options::new(profile.clone())
    };
    Sim::new(options).expect("address space")
}

/// A shared object in the machine's memory.
pub fn shared<T: Default + Send + Sync + 'static>(sim: &Sim) -> Arc<T> {
    sim.on_cpu(0, Arc::<T>::default)
}

/// Runs the jobs to their end; returns how long that takes, in nanoseconds.
pub fn finish(sim: &Sim, jobs: Jobs) -> u64 {
    let before = sim.time();
    sim.start_on(jobs);
    assert_eq!(sim.run(u64::MAX / 4000), Progress::Finished);
    sim.time() - before
}

/// Computes until the clock reads `until` nanoseconds, or a little more.
pub fn compute_until(until: u64) {
    while Sim::now() < until {
        sim::compute((until - Sim::now()) as f64 / 2.0 + 1.0);
    }
}

/// Spins until the line holds `value`.
pub fn wait_for(line: &Line, value: u64) {
    Sim::spin_until(|| line.0.load(Ordering::Acquire) == value);
}

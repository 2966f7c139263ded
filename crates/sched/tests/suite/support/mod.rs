//! Simulated machines with a scheduler.
#![allow(dead_code)] // each test takes its part

use machine::{Atomic, Atomics, Clock, Job, Ordering, Tasks};
use sched::{Best, Policy, Sched};
use sim::profile::MachineProfile;
use sim::{Delays, Options, Progress, Sim};
use std::sync::Arc;

pub const MICRO: u64 = 1_000;
pub const MILLI: u64 = 1_000_000;

/// A word in the machine's memory.
pub type Word = <Sim as Atomics>::AtomicU64;

/// One socket of `cpus` single-threaded cores, exact clocks.
pub fn quiet(cpus: usize, seed: u64) -> Options {
    let base = MachineProfile::named("freebsd-96").expect("built in");
    let profile = base.with_topology(1, cpus, 1).expect("possible");
    Options {
        seed,
        ..Options::new(profile)
    }
}

/// The quiet machine's options, with random delays.
pub fn with_delays(cpus: usize, seed: u64) -> Options {
    Options {
        delays: Some(Delays {
            one_in: 10,
            most: 2_000,
        }),
        ..quiet(cpus, seed)
    }
}

/// A machine with a scheduler of this policy.
pub fn machine<P: Policy<Sim>>(options: Options) -> Sim {
    let sim = Sim::new(options).expect("address space");
    sim.schedule(Sched::<Sim, P>::new);
    sim
}

/// A quiet machine with the default policy.
pub fn best(cpus: usize) -> Sim {
    machine::<Best<Sim>>(quiet(cpus, 0))
}

/// Creates a value in the machine's memory.
pub fn shared<T: Send + Sync + 'static>(
    sim: &Sim,
    make: impl FnOnce() -> T + Send + 'static,
) -> Arc<T> {
    sim.on_cpu(0, move || Arc::new(make()))
}

/// Words of 0 in the machine's memory.
pub fn words(sim: &Sim, count: usize) -> Arc<Vec<Word>> {
    shared(sim, move || (0..count).map(|_| Word::new(0)).collect())
}

/// Runs jobs that begin on the CPUs named with them; returns how long that takes.
pub fn finish(sim: &Sim, jobs: Vec<(usize, Job)>) -> u64 {
    let before = sim.time();
    sim.start_on(jobs);
    let limit = before + 100_000 * MILLI;
    assert_eq!(sim.run(limit), Progress::Finished);
    sim.time() - before
}

/// Runs job `i` on CPU `i % cpus`.
pub fn spread(sim: &Sim, count: usize, job: impl Fn(usize) -> Job) -> u64 {
    let cpus = machine::Topology::cpus(sim).len();
    finish(sim, (0..count).map(|i| (i % cpus, job(i))).collect())
}

/// Computes in small steps, with safe points in between; counts them in `work`.
pub fn work_until(end: u64, work: &Word) {
    let mut steps = 0;
    while Sim::now() < end {
        sim::compute(STEP as f64);
        steps += 1;
    }
    work.store(steps, Ordering::Relaxed);
}

/// Nanoseconds of a step of [`work_until`].
pub const STEP: u64 = 40 * MICRO;

/// Parks until the word has reached `value`.
pub fn wait_for(word: &Word, value: u64) {
    while word.load(Ordering::Acquire) < value {
        Sim::park();
    }
}

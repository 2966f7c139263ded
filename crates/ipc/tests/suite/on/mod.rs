//! Machines to test on, and the tests' vocabulary.

use hosted::Hosted;
use machine::{Execute, Job};
use sim::profile::MachineProfile;
use sim::{Delays, Options, Sim};

/// Runs `tasks` on a CPU each, at the same time.
pub fn together<M: Execute>(machine: &M, tasks: Vec<Job>) {
    machine.execute(tasks);
}

/// A hosted machine.
pub fn hosted(cpus: usize) -> Hosted {
    Hosted::new(cpus)
}

/// A simulated one, on which accesses are delayed at random by `seed`.
pub fn sim(seed: u64) -> Sim {
    let profile = MachineProfile::named("arm64-16").expect("a profile");
    Sim::new(Options {
        seed,
        spread: 20_000,
        delays: Some(Delays {
            one_in: 8,
            most: 2_000,
        }),
        ..Options::new(profile)
    })
    .expect("address space")
}

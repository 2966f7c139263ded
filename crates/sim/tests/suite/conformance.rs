//! The simulated machine keeps the contract.

use machine::conformance::{self, Smallest};
use machine::{Execute, PAGE_SIZE};
use sim::profile::MachineProfile;
use sim::{Options, Sim};

fn profile() -> MachineProfile {
    let base = MachineProfile::named("freebsd-96").expect("built in");
    base.with_topology(2, 2, 1).expect("possible")
}

fn machine(seed: u64, delays: bool) -> Sim {
    let delays = delays.then_some(sim::Delays {
        one_in: 8,
        most: 300,
    });
    Sim::new(Options {
        memory: 1024 * PAGE_SIZE,
        seed,
        delays,
        ..Options::new(profile())
    })
    .expect("address space")
}

#[test]
fn all() {
    conformance::all(&machine(0, false));
}

#[test]
fn exact_tlb() {
    conformance::exact_tlb(&machine(0, false));
    conformance::exact_large_tlb(&machine(0, false));
}

#[test]
fn all_with_delays() {
    for seed in 0..5 {
        conformance::all(&machine(seed, true));
    }
}

#[test]
fn contexts() {
    for (seed, delays) in [(0, false), (1, true), (2, true), (3, true)] {
        let machine = machine(seed, delays);
        machine.schedule(Smallest::<Sim>::new);
        let run = |jobs| machine.execute(jobs);
        conformance::outnumber::<Sim>(&run);
        let compute = |time| sim::compute(time as f64);
        conformance::pins::<Sim>(&run, compute, compute);
        conformance::wake_ups::<Sim>(&run);
    }
}

//! Forks of one space by several CPUs at a time.

use crate::world::{MIB, P, SLOT, page};
use machine::{Execute, Job};
use sim::Sim;
use sim::profile::MachineProfile;
use std::sync::Arc;
use vm::{Best, Prot, Space, Vm};

/// Where pages lie apart.
const APART: usize = 1 << 39;

/// Nanoseconds in which each of `cpus` CPUs copies a space of 32 MiB, and of 512 pages that lie
/// apart: tables are shared one after the other, all else is done concurrently.
fn time_of(cpus: usize) -> u64 {
    let profile = MachineProfile::named("freebsd-96").expect("built in");
    let sim = Sim::new(sim::Options {
        memory: 256 * MIB,
        ..sim::Options::new(profile)
    })
    .expect("address space");
    let machine = sim.clone();
    let space = sim.on_cpu(0, move || {
        let vm: Arc<Vm<Best<Sim>>> = Vm::new(machine).expect("memory for the VM");
        let space = Space::new(&vm).expect("memory");
        space.activate();
        let start = space.map(32 * MIB, Prot::READ_WRITE).expect("addresses");
        for page in (start..start + 32 * MIB).step_by(P) {
            space.store(page, 1).expect("mapped");
        }
        for at in (APART..).step_by(SLOT).take(512) {
            space
                .map_fixed(page(at), Prot::READ_WRITE)
                .expect("addresses");
        }
        Arc::new(space)
    });
    let began = sim.time();
    let job = |_| -> Job {
        let space = space.clone();
        Box::new(move || drop(space.fork().expect("memory")))
    };
    sim.execute((0..cpus).map(job).collect());
    let time = sim.time() - began;
    sim.on_cpu(0, move || drop(space));
    time
}

#[test]
fn forks_of_one_space_go_on_beside_each_other() {
    let [one, four] = [time_of(1), time_of(4)];
    assert!(four < 3 * one, "{one} ns alone, {four} of four");
}

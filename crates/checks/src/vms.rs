//! The machines on which checks run, and the VM as each preset builds it.

use sim::profile::MachineProfile;
use std::sync::{Arc, LazyLock};
use vm::{System, Vm};

/// A machine of this shape, with the costs of a large one.
pub fn profile(sockets: usize, cores: usize, threads: usize) -> MachineProfile {
    static COSTS: LazyLock<MachineProfile> =
        LazyLock::new(|| MachineProfile::named("freebsd-96").expect("a machine that is built in"));
    let shaped = COSTS.with_topology(sockets, cores, threads);
    shaped.expect("a shape that machines have")
}

/// Panics unless all frames and swap space of `vm`, which is no longer used, are free again.
pub fn assert_unused<S: System>(vm: &Arc<Vm<S>>) {
    let frames = vm.frames();
    assert_eq!(frames.free_count(), frames.total(), "frames leaked");
    assert_eq!(vm.committed(), 0, "swap space leaked");
    if let Some(slots) = vm.swap_slots() {
        assert_eq!((slots.used, slots.cached), (0, 0), "slots leaked");
    }
}

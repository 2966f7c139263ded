//! A VM on hosted memory and spaces in it, as most tests use them.

use hosted::Hosted;
use machine::{Pager, Topology};
use std::sync::Arc;
use vm::swap::SwapSpace;
use vm::{Best, Options, Space, Superpages, Vm};

pub type System = Arc<Vm<Best<Hosted>>>;
pub type TestSpace = Space<Best<Hosted>>;

const MIB: usize = 1 << 20;

/// A machine with memory and nowhere to swap to, this thread its first CPU.
pub fn plain(cpus: usize, mib: usize) -> System {
    with_options(cpus, mib, Options::default())
}

/// As [`plain`], with `options`.
pub fn with_options(cpus: usize, mib: usize, options: Options<Best<Hosted>>) -> System {
    let machine = Hosted::with_memory(cpus, mib * MIB).expect("memory");
    machine.attach(0);
    Vm::with_options(machine, options).expect("memory for the VM")
}

/// A machine with memory and a swap space of `slots` pages in `pager`, this thread its first CPU.
/// More can be committed than is used.
pub fn swapping(
    cpus: usize,
    mib: usize,
    (pager, slots): (impl Pager<Hosted>, u32),
    superpages: Superpages,
) -> System {
    let machine = Hosted::with_memory(cpus, mib * MIB).expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(pager), slots);
    let options = Options {
        swap_pages: Some(1 << 30),
        swap_space: Some(Arc::new(swap.expect("a swap space"))),
        superpages,
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

/// A space in which this thread's CPU runs.
pub fn active(vm: &System) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    space.activate();
    space
}

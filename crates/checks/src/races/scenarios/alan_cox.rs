//! Alan Cox's example (case study 000): a page unmapped by one CPU, written through the stale
//! translation of another, and taken for clean by a third.
//!
//! When `remove_all` returns, nobody can change the page any more, whoever had unmapped
//! it.

use super::pause;
use super::process::enter;
use super::store::{presets, with_policies};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, Atomics, Cpus, Memory, Mmu, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::{Best, Hold, Options, Policies, Prot, Space, Vm};

/// Where each space maps the page.
pub const AT: VaRange = VaRange {
    start: 1 << 30,
    end: (1 << 30) + PAGE_SIZE,
};
/// The CPU that writes.
pub const WRITER: usize = 0;
/// The CPU that sends the page out; those behind it unmap it.
pub const PAGEOUT: usize = 1;

/// Every preset.
pub fn all() -> Vec<Scenario> {
    let all = presets("alan-cox", build::<Best>, build::<_>).into_iter();
    // Some runs of FreeBSD's do not end if tasks are preempted.
    let preempted = |one: Scenario| match one.name.contains("freebsd") {
        true => one,
        false => one.preemptible(),
    };
    all.map(sized).map(preempted).collect()
}

/// The example with the policies `P`.
pub fn named<P: Policies<Sim>>(
    name: &str,
    options: impl Fn() -> Options<Sim, P> + Send + Sync + 'static,
) -> Scenario {
    sized(with_policies(name, options, build))
}

/// On machines that it fits.
fn sized(scenario: Scenario) -> Scenario {
    scenario.on(3..=5).with_memory(4 << 20)
}

struct World<P: Policies<Sim>> {
    vm: Arc<Vm<Sim, P>>,
    page: Hold<Sim, P>,
    /// One for each CPU that unmaps; all map the page.
    spaces: Vec<Space<Sim, P>>,
    /// The writer has translations.
    ready: <Sim as Atomics>::AtomicU32,
}

fn build<P: Policies<Sim>>(stage: &Stage, options: Options<Sim, P>) -> Play {
    let vm = Vm::with_options(stage.machine.clone(), options).expect("memory for the VM");
    let page = vm.new_page().expect("a page");
    let space = |_| {
        let space = Space::new(&vm).expect("a space");
        space.map_fixed(AT, Prot::READ_WRITE).expect("room");
        let entered = space.pmap().enter(AT.start, page.frame(), Prot::READ_WRITE);
        assert_eq!(entered, Ok(true));
        space
    };
    let spaces = (PAGEOUT + 1..stage.jobs).map(space).collect();
    let world = World {
        vm,
        page,
        spaces,
        ready: Atomic::new(0),
    };
    Play::new(stage, world, World::job, |world| {
        let vm = world.vm;
        drop((world.page, world.spaces));
        vms::assert_unused(&vm);
    })
}

impl<P: Policies<Sim>> World<P> {
    fn job(&self, cpu: usize) {
        if cpu == WRITER {
            return self.write();
        }
        Sim::spin_until(|| self.ready.load(Ordering::Acquire) == 1);
        pause(6_000);
        match cpu {
            PAGEOUT => self.page_out(),
            _ => self.spaces[cpu - PAGEOUT - 1].unmap(AT).expect("unmap"),
        }
    }

    /// Writes the page by whatever translation is left.
    fn write(&self) {
        let store = |space: &Space<Sim, P>, value| {
            enter(space);
            self.vm.machine().store(AT.start, value)
        };
        let first = self.spaces.iter().map(|space| store(space, 1));
        first.for_each(|stored| stored.expect("mapped"));
        self.ready.store(1, Ordering::Release);
        let mut left: Vec<_> = self.spaces.iter().collect();
        for value in 2.. {
            left.retain(|space| store(space, value).is_ok());
            if left.is_empty() {
                return;
            }
        }
    }

    fn page_out(&self) {
        let removed = self.vm.remove_all(&self.page);
        let word = self.vm.machine().word(self.page.frame(), 0);
        let found = word.load(Ordering::Acquire);
        assert!(removed.dirty, "written, and taken for clean");
        pause(6_000);
        let later = word.load(Ordering::Acquire);
        assert_eq!(
            found, later,
            "the page changed after all its mappings were removed"
        );
    }
}

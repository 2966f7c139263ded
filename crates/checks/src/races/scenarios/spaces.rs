//! The VM's operations by several CPUs on the same pages of one or two spaces.
//!
//! A page holds zero or the words that its space writes there. The machine watches the owners
//! of frames and uses of stale translations; at the end every frame must be back.

use super::pause;
use super::process::{a_heap_end, assert_heap, enter};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use baselines::Preset;
use baselines::selected::Selected;
use machine::{Mmu, PAGE_SIZE, VaRange};
use sim::Sim;
use std::cell::Cell;
use std::sync::Arc;
use vm::{Error, HEAP_START, Options, Prot, Space, System, Vm};

/// Operations of each CPU.
const ROUNDS: u64 = 24;
/// Pages that all CPUs of a space work on.
const PAGES: u64 = 6;
/// The first of these pages, which lie on both sides of a table's end.
const FIRST: usize = (1 << 42) + (2 << 20) - PAGES as usize / 2 * PAGE_SIZE;
/// Physical memory of a machine.
const MEMORY: usize = 8 << 20;

/// Every preset, with one space and with two.
pub fn all() -> Vec<Scenario> {
    let both = |preset: Preset| {
        [(1, "one-space"), (2, "two-spaces")].map(|(count, name)| {
            let name = format!("{name}.{preset}");
            let scenario = Scenario::new(name, move |stage| {
                build::<Selected<Sim>>(stage, preset.options(), count)
            });
            scenario.with_memory(MEMORY)
        })
    };
    Preset::ALL.into_iter().flat_map(both).collect()
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    spaces: Vec<Space<S>>,
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>, spaces: usize) -> Play {
    let vm = Vm::with_options(stage.machine.clone(), options).expect("memory for the VM");
    let spaces = (0..spaces).map(|_| Space::new(&vm).expect("a space"));
    let world = World {
        spaces: spaces.collect(),
        vm,
    };
    Play::new(stage, world, World::job, |world| {
        let vm = world.vm;
        world.spaces.iter().for_each(assert_heap);
        drop(world.spaces);
        vms::assert_unused(&vm);
    })
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        let which = cpu % self.spaces.len();
        let worker = Worker {
            vm: &self.vm,
            space: &self.spaces[which],
            mark: (which as u64 + 1) << 56,
            cpu,
            serial: Cell::new(0),
        };
        enter(worker.space);
        for _ in 0..ROUNDS {
            worker.step();
            pause(200);
        }
    }
}

/// One CPU at work in its space.
struct Worker<'a, S: System<Machine = Sim>> {
    vm: &'a Arc<Vm<S>>,
    space: &'a Space<S>,
    /// The mark that tells this space's pages from another's.
    mark: u64,
    cpu: usize,
    /// The number of its own mappings.
    serial: Cell<u64>,
}

impl<S: System<Machine = Sim>> Worker<'_, S> {
    /// A random operation. Faults are more frequent than operations that cause them.
    fn step(&self) {
        let space = self.space;
        let done = match sim::dice(16) {
            0 => space.map_fixed(some_pages(), Prot::READ_WRITE),
            1 => space.map_fixed(some_pages(), Prot::READ),
            2 => space.unmap(some_pages()),
            3 => space.protect(some_pages(), Prot::READ),
            4 => space.protect(some_pages(), Prot::READ_WRITE),
            5 => space.protect(some_pages(), Prot::NONE),
            6 => space.discard(some_pages()),
            7 => self.page_out(),
            8 => self.own_pages(),
            9 => self.heap(),
            10..13 => self.load(),
            _ => self.store(),
        };
        match done {
            Ok(()) | Err(Error::Segv(_) | Error::NotMapped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn value(&self, address: usize) -> u64 {
        self.mark | address as u64
    }

    /// A number that no CPU has used.
    fn serial(&self) -> u64 {
        self.serial.update(|last| last + 1);
        (self.cpu as u64 + 1) << 8 | self.serial.get()
    }

    fn store(&self) -> Result<(), Error> {
        let address = a_page();
        self.space.store(address, self.value(address))
    }

    fn load(&self) -> Result<(), Error> {
        let address = a_page();
        let found = self.space.load(address)?;
        let sound = found == 0 || found == self.value(address);
        assert!(
            sound,
            "{address:#x} holds {found:#x}, which no CPU wrote there"
        );
        Ok(())
    }

    /// Takes a page away by the reverse map.
    fn page_out(&self) -> Result<(), Error> {
        let frame = self.space.pmap().lookup(a_page());
        if let Some(hold) = frame.and_then(|frame| self.vm.hold(frame)) {
            self.vm.remove_all(&hold);
        }
        Ok(())
    }

    /// Maps pages of its own, where no other job interferes.
    fn own_pages(&self) -> Result<(), Error> {
        let bytes = (1 + sim::dice(3) as usize) * PAGE_SIZE;
        let at = self.space.map(bytes, Prot::READ_WRITE)?;
        let pages = || (at..at + bytes).step_by(PAGE_SIZE);
        // Another CPU may use the addresses next, but never the values.
        let serial = self.serial();
        let value = |page: usize| serial << 32 | page as u64 & 0xffff_f000;
        for page in pages() {
            assert_eq!(self.space.load(page)?, 0, "another's page");
            self.space.store(page, value(page))?;
        }
        for page in pages() {
            assert_eq!(self.space.load(page)?, value(page), "written by another");
        }
        self.space.unmap(VaRange::sized(at, bytes))?;
        for page in pages() {
            // SAFETY: the CPU translates by tables that stay during the call.
            let found = unsafe { self.vm.machine().load(page) };
            assert_ne!(found, Ok(value(page)), "reached after unmap");
        }
        Ok(())
    }

    /// Moves the heap's end, and touches pages that may be there.
    fn heap(&self) -> Result<(), Error> {
        self.space.set_break(a_heap_end())?;
        self.space.store(HEAP_START, self.value(HEAP_START))
    }
}

/// A page that all work on.
fn a_page() -> usize {
    FIRST + sim::dice(PAGES) as usize * PAGE_SIZE
}

/// Some of the pages that all work on.
fn some_pages() -> VaRange {
    let first = sim::dice(PAGES);
    let count = 1 + sim::dice(PAGES - first);
    VaRange::sized(
        FIRST + first as usize * PAGE_SIZE,
        count as usize * PAGE_SIZE,
    )
}

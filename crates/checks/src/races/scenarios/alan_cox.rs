//! Alan Cox's example (case study 000): a page unmapped by one CPU, written through the stale
//! translation of another, and taken for clean by a third.
//!
//! When `remove_all` returns, no CPU can change the page any more, no matter which CPU unmapped it.
//! The page is private, or an object's, which has no list of its mappings by default.

use super::pause;
use super::process::enter;
use super::store::{presets, with_parts};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, Atomics, Cpus, Mmu, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::object::{Object, Pattern};
use vm::{At, Hold, Options, Prot, Request, Space, System, Vm};

/// Where each space maps the page.
pub const AT: VaRange = VaRange {
    start: 1 << 30,
    end: (1 << 30) + PAGE_SIZE,
};
/// The CPU that writes.
pub const WRITER: usize = 0;
/// The CPU that sends the page out; those behind it unmap it.
pub const PAGEOUT: usize = 1;

/// Every preset, with a private page and with an object's.
pub fn all() -> Vec<Scenario> {
    let private = presets("alan-cox", build).into_iter();
    let objects = presets("alan-cox-object", build_object);
    private.chain(objects).map(sized).collect()
}

/// The example in the system `S`.
pub fn named<S: System<Machine = Sim>>(
    name: &str,
    options: impl Fn() -> Options<S> + Send + Sync + 'static,
) -> Scenario {
    sized(with_parts(name, options, build))
}

/// The scenario with the number of jobs and the memory that it needs.
fn sized(scenario: Scenario) -> Scenario {
    scenario.on(3..=5).with_memory(4 << 20)
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    page: Hold<S>,
    /// A space for each CPU that unmaps; all map the page.
    spaces: Vec<Space<S>>,
    /// 1 once the writer has translations.
    ready: <Sim as Atomics>::AtomicU32,
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = Vm::with_options(stage.machine.clone(), options).expect("memory for the VM");
    let page = vm.new_page().expect("a page");
    let space = |_| {
        let space = Space::new(&vm).expect("a space");
        space.map_fixed(AT, Prot::READ_WRITE).expect("room");
        let entered = space.pmap().enter(AT.start, &page, Prot::READ_WRITE);
        assert_eq!(entered, Ok(true));
        space
    };
    let spaces = (PAGEOUT + 1..stage.jobs).map(space).collect();
    play(stage, vm, page, spaces)
}

fn build_object<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = Vm::with_options(stage.machine.clone(), options).expect("memory for the VM");
    let object = Object::anonymous(&vm, PAGE_SIZE as u64).expect("an object");
    let page = object.page(0, Pattern::Random).expect("a page");
    let page = vm.hold(page.frame()).expect("the object's");
    let space = |_| {
        let space = Space::new(&vm).expect("a space");
        let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ_WRITE);
        let request = request.expect("a request").shared();
        let mapped = space.map_as(&request.at(At::Fixed(AT.start)));
        assert_eq!(mapped, Ok(AT.start));
        space
    };
    let spaces = (PAGEOUT + 1..stage.jobs).map(space).collect();
    // The spaces keep the object, and the page is looked for there as long as one does.
    play(stage, vm, page, spaces)
}

fn play<S: System<Machine = Sim>>(
    stage: &Stage,
    vm: Arc<Vm<S>>,
    page: Hold<S>,
    spaces: Vec<Space<S>>,
) -> Play {
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

impl<S: System<Machine = Sim>> World<S> {
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

    /// Writes the page through any translation that is left.
    fn write(&self) {
        let store = |space: &Space<S>, value| {
            enter(space);
            // SAFETY: the CPU translates by tables that stay during the call.
            unsafe { self.vm.machine().store(AT.start, value) }
        };
        for space in &self.spaces {
            enter(space);
            // An object's page comes with a fault.
            space.store(AT.start, 1).expect("mapped");
        }
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
        let word = self.page.word(0);
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

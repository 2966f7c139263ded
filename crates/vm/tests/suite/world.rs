//! The world of a test: a machine on hosted memory, a VM on it, and spaces.

use hosted::{Hosted, Options as Machine};
use machine::{PAGE_SIZE, Pager, Topology, VaRange};
use std::sync::Arc;
use vm::object::ObjectRef;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Best, Error, Options, Space, Superpages, Vm};

pub type System = Arc<Vm<Best<Hosted>>>;
pub type TestSpace = Space<Best<Hosted>>;
/// A file, or shared memory.
pub type File = ObjectRef<Best<Hosted>>;

pub const P: usize = PAGE_SIZE;
pub const MIB: usize = 1 << 20;
/// What a leaf table covers, a slot of level 0, and a superpage.
pub const SLOT: usize = 2 * MIB;

/// What a machine and the VM on it are to be.
pub struct World {
    machine: Machine,
    options: Options<Best<Hosted>>,
    swap: Option<(Box<dyn Pager<Hosted>>, u32)>,
}

/// Two CPUs, `mib` MiB of memory and no swap space, if nothing else is said.
pub fn world(mib: usize) -> World {
    World {
        machine: Machine::new(2, mib * MIB),
        options: Options::default(),
        swap: None,
    }
}

impl World {
    pub fn cpus(self, cpus: usize) -> Self {
        self.machine(|machine| machine.cpus = cpus)
    }

    /// Superpages wherever there can be any.
    pub fn superpages(self) -> Self {
        self.with(|options| options.superpages = Superpages::Always)
    }

    /// At most `pages` pages can be committed.
    pub fn commits(self, pages: u64) -> Self {
        self.with(|options| options.swap_pages = Some(pages))
    }

    /// A swap space of `slots` pages. More can be committed than any test commits.
    pub fn swap(self, slots: u32) -> Self {
        self.swap_in(MemoryPager::new(), slots)
    }

    /// As [`World::swap`], in a store of the test's.
    pub fn swap_in(mut self, pager: impl Pager<Hosted>, slots: u32) -> Self {
        self.swap = Some((Box::new(pager), slots));
        self.commits(1 << 30)
    }

    pub fn machine(mut self, change: impl FnOnce(&mut Machine)) -> Self {
        change(&mut self.machine);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Options<Best<Hosted>>)) -> Self {
        change(&mut self.options);
        self
    }

    /// The VM, for jobs that run on all CPUs.
    pub fn apart(self) -> System {
        self.make(|_| ())
    }

    /// The VM. This thread is the first CPU.
    pub fn vm(self) -> System {
        self.make(|machine| machine.attach(0))
    }

    /// The only space in the VM. This thread runs in it, as the first CPU.
    pub fn space(self) -> TestSpace {
        active(&self.vm())
    }

    fn make(self, begin: impl FnOnce(&Hosted)) -> System {
        let machine = Hosted::with_options(self.machine).expect("memory");
        begin(&machine);
        let mut options = self.options;
        if let Some((pager, slots)) = self.swap {
            let swap = SwapSpace::new(machine.cpus(), pager, slots);
            options.swap_space = Some(swap.expect("a swap space"));
        }
        Vm::with_options(machine, options).expect("memory for the VM")
    }
}

/// A space in which this thread's CPU runs.
pub fn active(vm: &System) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    space.activate();
    space
}

/// The page at `at`.
pub fn page(at: usize) -> VaRange {
    pages(at, 1)
}

/// `count` pages from `at` on.
pub fn pages(at: usize, count: usize) -> VaRange {
    VaRange::sized(at, count * P)
}

/// Runs in `space`, and stores.
pub fn store(space: &TestSpace, at: usize, value: u64) {
    space.activate();
    space.store(at, value).expect("store");
}

/// Runs in `space`, and loads.
pub fn load(space: &TestSpace, at: usize) -> u64 {
    space.activate();
    space.load(at).expect("load")
}

pub fn is_segv<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Segv(_)))
}

/// Pages that are committed.
pub fn reserved(vm: &System) -> u64 {
    vm.committed()
}

/// Slots of the swap space that are not free.
pub fn swapped(vm: &System) -> u64 {
    vm.swap_slots().map_or(0, |slots| slots.used)
}

/// All pages go that may.
pub fn squeeze(vm: &System) {
    while vm.reclaim(usize::MAX) > 0 {}
}

/// The frames, committed pages, slots and cached pages that are in use.
pub fn in_use(vm: &System) -> (usize, u64, u64, u64) {
    let frames = vm.frames().total() - vm.frames().free_count();
    let cached = vm.swap_slots().map_or(0, |slots| slots.cached);
    (frames, reserved(vm), swapped(vm), cached)
}

/// Sees that all spaces and objects have gone for good.
#[track_caller]
pub fn nothing_left(vm: &System) {
    let what = "frames, committed pages, slots, cached pages";
    assert_eq!(in_use(vm), (0, 0, 0, 0), "{what}");
}

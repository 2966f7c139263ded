//! Forks while other CPUs run in the parent.
//!
//! Each CPU has a word of its own in each page and writes ever greater numbers there. A child has a
//! number that had been written when the fork began, or a later one whose write had begun when the
//! fork returned. From then on only the child's own stores change its memory, and no other process
//! sees them.

use super::pause;
use super::process::{a_heap_end, assert_heap, enter, leave};
use super::store::{Table, number, presets, sharing, value, with_swap};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{PAGE_SIZE, Platform, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::{Best, Error, HEAP_START, Options, Prot, Space, System, Vm};

/// Forks, and stores of each other CPU.
const FORKS: u64 = 5;
const STORES: u64 = 24;
/// Pages that all CPUs work on.
const PAGES: usize = 4;
/// The first of these pages, which lie on both sides of a table's end.
const FIRST: usize = (1 << 42) + (2 << 20) - PAGES / 2 * PAGE_SIZE;
const WHOLE: VaRange = VaRange {
    start: FIRST,
    end: FIRST + PAGES * PAGE_SIZE,
};
/// The 2 MiB on both sides.
const SLOTS: VaRange = VaRange {
    start: 1 << 42,
    end: (1 << 42) + (4 << 20),
};
/// Physical memory of a machine.
const MEMORY: usize = 8 << 20;
/// The CPU that forks. It writes only to children.
const FORKER: usize = 0;

/// Every preset, with a parent that only stores, and with one that also changes its mappings.
pub fn all() -> Vec<Scenario> {
    let fault = presets("fork-fault", stores);
    let change = presets("fork-change", changes);
    let tables = [
        sharing("fork-fault", stores),
        sharing("fork-change", changes),
    ];
    let all = fault.into_iter().chain(change).chain(tables);
    all.map(|scenario| scenario.with_memory(MEMORY)).collect()
}

/// A parent that stores, on the machine as wrapped by `wrap`.
pub fn named<M: Platform>(name: &str, wrap: fn(Sim) -> M) -> Scenario {
    let options = Options::<Best<M>>::default;
    let build = move |stage: &Stage| build(stage, wrap(stage.machine.clone()), options(), false);
    Scenario::new(name, build).with_memory(MEMORY)
}

fn stores<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    build(stage, stage.machine.clone(), options, false)
}

fn changes<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    build(stage, stage.machine.clone(), options, true)
}

struct World<S: System> {
    vm: Arc<Vm<S>>,
    parent: Space<S>,
    /// The numbers that each CPU last began to write; `done` has those that it last wrote.
    begun: Table<S::Machine, PAGES>,
    done: Table<S::Machine, PAGES>,
    jobs: usize,
    /// True if mappings change during the forks.
    changes: bool,
}

fn build<S: System>(
    stage: &Stage,
    wrapped: S::Machine,
    options: Options<S>,
    changes: bool,
) -> Play {
    let vm = with_swap(wrapped, options);
    let parent = Space::new(&vm).expect("a space");
    parent.map_fixed(WHOLE, Prot::READ_WRITE).expect("room");
    let world = World {
        vm,
        parent,
        begun: Table::new(stage.jobs),
        done: Table::new(stage.jobs),
        jobs: stage.jobs,
        changes,
    };
    Play::new(stage, world, World::job, |world| {
        let vm = world.vm;
        drop(world.parent);
        vms::assert_unused(&vm);
    })
}

/// The CPU's word of a page.
fn word(page: usize, cpu: usize) -> usize {
    FIRST + page * PAGE_SIZE + 8 * cpu
}

fn some_pages() -> VaRange {
    let first = sim::dice(PAGES as u64) as usize;
    let count = 1 + sim::dice((PAGES - first) as u64) as usize;
    VaRange::sized(FIRST + first * PAGE_SIZE, count * PAGE_SIZE)
}

impl<S: System> World<S> {
    fn job(&self, cpu: usize) {
        match cpu {
            FORKER => (0..FORKS).for_each(|_| self.fork()),
            _ => self.write(cpu),
        }
    }

    /// Writes the CPU's words, and finds there the ones it wrote last.
    fn write(&self, cpu: usize) {
        enter(&self.parent);
        let mut last = [0; PAGES];
        for n in 1..=STORES {
            if self.changes && sim::dice(3) == 0 {
                self.change();
            }
            let page = sim::dice(PAGES as u64) as usize;
            self.begun.set(cpu, page, n);
            if let Some(()) = self.mapped(self.parent.store(word(page, cpu), value(n))) {
                self.done.set(cpu, page, n);
                last[page] = n;
            }
            pause(400);
            let page = sim::dice(PAGES as u64) as usize;
            if let Some(found) = self.mapped(self.parent.load(word(page, cpu))) {
                let sound = number(found) == last[page] || self.changes && found == 0;
                assert!(sound, "{found:#x} instead of number {}", last[page]);
            }
        }
    }

    /// Changes a mapping.
    fn change(&self) {
        let parent = &self.parent;
        let changed = match sim::dice(11) {
            0 => parent.unmap(some_pages()),
            10 => parent.unmap(SLOTS),
            1 => parent.discard(some_pages()),
            2 => parent.protect(some_pages(), Prot::READ),
            3 | 4 => parent.protect(some_pages(), Prot::READ_WRITE),
            5 | 6 => parent.set_break(a_heap_end()),
            _ => parent.map_fixed(some_pages(), Prot::READ_WRITE),
        };
        match changed {
            Ok(()) | Err(Error::NotMapped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// The result; `None` if the access was not allowed, which may happen where mappings change.
    fn mapped<R>(&self, result: Result<R, Error>) -> Option<R> {
        match result {
            Ok(result) => Some(result),
            Err(Error::Segv(_)) if self.changes => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// All words in a space that this CPU runs in.
    fn look(&self, space: &Space<S>) -> Vec<Option<u64>> {
        let words = (0..PAGES).flat_map(|page| (0..self.jobs).map(move |cpu| word(page, cpu)));
        words.map(|word| self.mapped(space.load(word))).collect()
    }

    fn fork(&self) {
        let done = self.done.all();
        let child = self.parent.fork().expect("a fork");
        let begun = self.begun.all();
        enter(&child);
        assert_heap(&child);
        let end = child.current_break();
        if end > HEAP_START {
            let found = child.load(end - PAGE_SIZE);
            assert_eq!(found, Ok(0), "the last page of a child's heap");
        }
        let grown = child.set_break(end + PAGE_SIZE);
        assert_eq!(grown, Ok(()), "what a child's heap grows by is free");
        let mut seen = self.look(&child);
        let cpus = done.len();
        for (place, found) in seen.iter().enumerate() {
            let (page, cpu) = (place / cpus, place % cpus);
            let Some(n) = found.map(number) else { continue };
            let (least, most) = (done[cpu][page], begun[cpu][page]);
            assert!(n <= most, "number {n} came after the fork: at most {most}");
            assert!(
                n >= least || self.changes,
                "number {n} is older than {least}"
            );
        }
        let page = sim::dice(PAGES as u64) as usize;
        if let Some(()) = self.mapped(child.store(word(page, FORKER), value(1))) {
            seen[page * cpus + FORKER] = Some(value(1));
        }
        if sim::dice(2) == 0 {
            let grandchild = child.fork().expect("a fork");
            enter(&grandchild);
            assert_eq!(self.look(&grandchild), seen, "a child's child");
            for page in 0..PAGES {
                self.mapped(grandchild.store(word(page, FORKER), value(2)));
            }
            leave::<S::Machine>();
            drop(grandchild);
            enter(&child);
        }
        pause(6_000);
        assert_eq!(self.look(&child), seen, "a child changed after the fork");
        leave::<S::Machine>();
        drop(child);
        enter(&self.parent);
        for page in 0..PAGES {
            let found = self.mapped(self.parent.load(word(page, FORKER)));
            assert!(found.is_none_or(|found| found == 0), "the child's store");
        }
    }
}

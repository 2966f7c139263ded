//! Families of processes whose pages go to the swap space and come back.
//!
//! Each CPU has a word of its own in each page of a family's first process, and in shared memory;
//! it forks children of its own, and knows the words that they must find: in pages that it has
//! given up (`MADV_FREE`), its last word or zero. One CPU does nothing but reclaim.

use super::pause;
use super::process::{enter, leave};
use super::store::{presets, sharing, with_swap};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, AtomicInt, Atomics, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::{Advice, At, Bring, Error, Move, Options, Prot, Request, Space, System, Vm};

/// Rounds of each CPU.
const ROUNDS: u64 = 32;
/// Children that a CPU has at a time.
const CHILDREN: usize = 2;
/// Pages of private memory, and of shared memory.
const PAGES: usize = 4;
const BYTES: usize = PAGES * PAGE_SIZE;
/// Where private memory begins: at a table's end.
const FIRST: usize = (1 << 42) + (2 << 20) - BYTES / 2;
/// Where shared memory begins.
const SHARED: usize = 1 << 43;
/// How far private memory moves.
const STEP: usize = 3 << 20;
/// Physical memory of a machine.
const MEMORY: usize = 4 << 20;
/// The CPU that reclaims.
const DAEMON: usize = 0;

/// Every preset.
pub fn all() -> Vec<Scenario> {
    let all = presets("reclaim", build).into_iter();
    let all = all.chain([sharing("reclaim", build)]);
    all.map(|one| one.on(2..=5).with_memory(MEMORY)).collect()
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    first: Space<S>,
    /// CPUs that have not ended.
    working: <Sim as Atomics>::AtomicUsize,
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = with_swap(stage.machine.clone(), options);
    let first = Space::new(&vm).expect("a space");
    let private = VaRange::sized(FIRST, BYTES);
    first.map_fixed(private, Prot::READ_WRITE).expect("room");
    let shared = Request::anonymous(BYTES, Prot::READ_WRITE).shared();
    first.map_as(&shared.at(At::Fixed(SHARED))).expect("room");
    let world = World {
        vm,
        first,
        working: Atomic::new(stage.jobs - 1),
    };
    Play::new(stage, world, World::job, |world| {
        let vm = world.vm;
        drop(world.first);
        vms::assert_unused(&vm);
    })
}

/// A process, and the expected values of the CPU's words in its private memory.
struct Process<'a, S: System<Machine = Sim>> {
    space: Owned<'a, Space<S>>,
    start: usize,
    words: [u64; PAGES],
    /// True for pages that are given up, which may be zero instead.
    given_up: [bool; PAGES],
}

/// Common to all CPUs, or the CPU's own.
enum Owned<'a, T> {
    Shared(&'a T),
    Own(T),
}

impl<T> Owned<'_, T> {
    fn get(&self) -> &T {
        match self {
            Owned::Shared(of_all) => of_all,
            Owned::Own(own) => own,
        }
    }
}

/// One CPU at work.
struct Worker<'a, S: System<Machine = Sim>> {
    cpu: usize,
    /// The number of its stores.
    stores: u64,
    /// The processes. All CPUs share the first.
    processes: Vec<Process<'a, S>>,
    /// The expected values of its words in shared memory.
    shared: [u64; PAGES],
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        if cpu == DAEMON {
            while self.working.load(Ordering::Acquire) > 0 {
                self.vm.reclaim(1 + sim::dice(6) as usize);
                pause(4_000);
            }
            return;
        }
        let first = Process {
            space: Owned::Shared(&self.first),
            start: FIRST,
            words: [0; PAGES],
            given_up: [false; PAGES],
        };
        let mut worker = Worker {
            cpu,
            stores: 0,
            processes: vec![first],
            shared: [0; PAGES],
        };
        for _ in 0..ROUNDS {
            worker.step();
            pause(400);
        }
        for which in 0..worker.processes.len() {
            worker.look(which);
        }
        leave::<Sim>();
        drop(worker);
        self.first.activate();
        self.working.fetch_sub(1, Ordering::Release);
    }
}

fn a_page() -> usize {
    sim::dice(PAGES as u64) as usize
}

impl<S: System<Machine = Sim>> Worker<'_, S> {
    /// A random operation in one of the processes.
    fn step(&mut self) {
        let which = sim::dice(self.processes.len() as u64) as usize;
        enter(self.processes[which].space.get());
        match sim::dice(12) {
            0..3 => self.store(which),
            3 => self.store_shared(which),
            4 | 5 => self.look(which),
            6 if self.processes.len() <= CHILDREN => self.fork(which),
            7 if which > 0 => {
                leave::<Sim>();
                drop(self.processes.swap_remove(which));
            }
            8 if which > 0 => self.change(which),
            _ => self.page_out(which),
        }
    }

    fn number(&mut self) -> u64 {
        self.stores += 1;
        (self.cpu as u64) << 32 | self.stores
    }

    fn store(&mut self, which: usize) {
        let (page, number) = (a_page(), self.number());
        let at = 8 * self.cpu + page * PAGE_SIZE;
        let process = &mut self.processes[which];
        let stored = process.space.get().store(process.start + at, number);
        stored.expect("private memory");
        process.words[page] = number;
        process.given_up[page] = false;
    }

    fn store_shared(&mut self, which: usize) {
        let (page, number) = (a_page(), self.number());
        let at = SHARED + 8 * self.cpu + page * PAGE_SIZE;
        let stored = self.processes[which].space.get().store(at, number);
        stored.expect("shared memory");
        self.shared[page] = number;
    }

    /// Checks the words in all pages.
    fn look(&mut self, which: usize) {
        let process = &mut self.processes[which];
        let space = process.space.get();
        enter(space);
        for page in 0..PAGES {
            let at = 8 * self.cpu + page * PAGE_SIZE;
            let private = space.load(process.start + at);
            if process.given_up[page] && private == Ok(0) {
                // The value is lost, and does not come back.
                process.words[page] = 0;
            }
            assert_eq!(private, Ok(process.words[page]), "private page {page}");
            assert_eq!(
                space.load(SHARED + at),
                Ok(self.shared[page]),
                "shared page {page}"
            );
        }
    }

    fn fork(&mut self, which: usize) {
        let parent = &self.processes[which];
        let child = parent.space.get().fork().expect("a fork");
        let child = Process {
            space: Owned::Own(child),
            start: parent.start,
            words: parent.words,
            given_up: parent.given_up,
        };
        self.processes.push(child);
    }

    /// Sends a page out, through one of the processes that have it.
    fn page_out(&self, which: usize) {
        let process = &self.processes[which];
        let start = match sim::dice(3) {
            0 => SHARED,
            _ => process.start,
        };
        let range = VaRange::sized(start + a_page() * PAGE_SIZE, PAGE_SIZE);
        match process.space.get().advise(range, Advice::PageOut) {
            // Its memory is locked.
            Ok(()) | Err(Error::Invalid { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Changes a mapping of one of its own processes.
    fn change(&mut self, which: usize) {
        let process = &mut self.processes[which];
        let space = process.space.get();
        let whole = VaRange::sized(process.start, BYTES);
        let page = a_page();
        let range = VaRange::sized(process.start + page * PAGE_SIZE, PAGE_SIZE);
        let changed = match sim::dice(9) {
            0 => space
                .protect(whole, Prot::READ)
                .and_then(|()| space.protect(whole, Prot::READ_WRITE)),
            1 => match space.discard(range) {
                // Locked pages stay.
                Err(Error::Invalid { .. }) => Ok(()),
                dropped => {
                    process.words[page] = 0;
                    dropped
                }
            },
            7 | 8 => match space.advise(range, Advice::Free) {
                Err(Error::Invalid { .. }) => Ok(()),
                freed => {
                    process.given_up[page] = true;
                    freed
                }
            },
            2 => {
                process.words[page] = 0;
                space
                    .unmap(range)
                    .and_then(|()| space.map_fixed(range, Prot::READ_WRITE))
            }
            3 => space.lock(whole, [Bring::OnFault, Bring::Now][sim::dice(2) as usize]),
            4 => space.unlock(whole),
            _ => {
                process.start += STEP;
                let moved = space.remap(whole, BYTES, Move::To(process.start));
                match moved {
                    // A part has been mapped again, or locked.
                    Err(Error::NotOne { .. }) => {
                        process.start -= STEP;
                        Ok(())
                    }
                    moved => moved.map(drop),
                }
            }
        };
        changed.expect("changed");
    }
}

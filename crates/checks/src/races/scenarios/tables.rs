//! Families of processes whose tables are taken away while they use them.
//!
//! All map the same shared memory, a page in each of some tables; each CPU has a word of its own
//! in each page, and forks, changes and ends processes of its own. One CPU does nothing but
//! take tables away, and sometimes pages.

use super::pause;
use super::process::{enter, leave};
use super::store::presets;
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, AtomicInt, Atomics, Ordering, PAGE_SIZE, VaRange};
use sim::Sim;
use std::sync::Arc;
use vm::object::ObjectRef;
use vm::{At, Bring, Error, Options, Prot, Request, Space, System, Vm};

/// Rounds of each CPU.
const ROUNDS: u64 = 32;
/// Processes that a CPU has at a time.
const PROCESSES: usize = 3;
/// Tables of a process.
const TABLES: usize = 4;
const TABLE: usize = 2 << 20;
/// Where the memory is.
const FIRST: usize = 1 << 42;
/// Physical memory of a machine: little more than all tables need.
const MEMORY: usize = 3 << 18;
/// The CPU that takes tables away.
const DAEMON: usize = 0;

/// Every preset.
pub fn all() -> Vec<Scenario> {
    let all = presets("tables", build).into_iter();
    all.map(|one| one.on(2..=5).with_memory(MEMORY)).collect()
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    memory: ObjectRef<S>,
    /// CPUs that have not ended.
    working: <Sim as Atomics>::AtomicUsize,
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = Vm::with_options(
        stage.machine.clone(),
        Options {
            swap_pages: Some(1 << 20),
            ..options
        },
    )
    .expect("memory for the VM");
    let bytes = (TABLES * TABLE) as u64;
    let world = World {
        memory: vm.shared_memory(bytes).expect("shared memory"),
        vm,
        working: Atomic::new(stage.jobs - 1),
    };
    Play::new(stage, world, World::job, |world| {
        let World { vm, memory, .. } = world;
        drop(memory);
        vms::assert_unused(&vm);
    })
}

/// One CPU at work.
struct Worker<'a, S: System<Machine = Sim>> {
    world: &'a World<S>,
    cpu: usize,
    /// The number of its stores.
    stores: u64,
    processes: Vec<Space<S>>,
    /// The expected values of its words.
    words: [u64; TABLES],
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        if cpu == DAEMON {
            return self.take_away();
        }
        let mut worker = Worker {
            world: self,
            cpu,
            stores: 0,
            processes: vec![self.process()],
            words: [0; TABLES],
        };
        for _ in 0..ROUNDS {
            worker.step();
            pause(400);
        }
        worker.processes.iter().for_each(|space| worker.look(space));
        leave::<Sim>();
        drop(worker);
        self.working.fetch_sub(1, Ordering::Release);
    }

    fn take_away(&self) {
        while self.working.load(Ordering::Acquire) > 0 {
            match sim::dice(8) {
                0 => self.vm.reclaim(1),
                _ => self.vm.reclaim_tables(1 + sim::dice(6) as usize),
            };
            pause(2_000);
        }
    }

    /// A process with all of the memory.
    fn process(&self) -> Space<S> {
        let space = Space::new(&self.vm).expect("a space");
        self.map(&space, 0, TABLES);
        space
    }

    /// Maps a part of the memory at its place.
    fn map(&self, space: &Space<S>, first: usize, count: usize) {
        let offset = (first * TABLE) as u64;
        let request = Request::object(&self.memory, offset, count * TABLE, Prot::READ_WRITE);
        let request = request.expect("a request").shared();
        let mapped = space.map_as(&request.at(At::Fixed(FIRST + first * TABLE)));
        mapped.expect("room");
    }
}

fn a_table() -> usize {
    sim::dice(TABLES as u64) as usize
}

impl<S: System<Machine = Sim>> Worker<'_, S> {
    /// A random operation in one of the processes.
    fn step(&mut self) {
        let which = sim::dice(self.processes.len() as u64) as usize;
        enter(&self.processes[which]);
        match sim::dice(12) {
            0..4 => self.store(which),
            4..7 => self.look(&self.processes[which]),
            7 if self.processes.len() < PROCESSES => {
                let child = self.processes[which].fork().expect("a fork");
                self.processes.push(child);
            }
            8 if self.processes.len() > 1 => {
                leave::<Sim>();
                drop(self.processes.swap_remove(which));
            }
            _ => self.change(which),
        }
    }

    /// Where the CPU's word of a table's page is.
    fn place(&self, table: usize) -> usize {
        FIRST + table * (TABLE + PAGE_SIZE) + 8 * self.cpu
    }

    fn store(&mut self, which: usize) {
        self.stores += 1;
        let (table, number) = (a_table(), (self.cpu as u64) << 32 | self.stores);
        let stored = self.processes[which].store(self.place(table), number);
        stored.expect("shared memory");
        self.words[table] = number;
    }

    /// Checks the words in all pages.
    fn look(&self, space: &Space<S>) {
        enter(space);
        for (table, &word) in self.words.iter().enumerate() {
            assert_eq!(space.load(self.place(table)), Ok(word), "table {table}");
        }
    }

    /// Changes a process's mappings, and restores them.
    fn change(&self, which: usize) {
        let space = &self.processes[which];
        let (first, all) = (a_table(), VaRange::sized(FIRST, TABLES * TABLE));
        let count = 1 + sim::dice((TABLES - first) as u64) as usize;
        let part = VaRange::sized(FIRST + first * TABLE, count * TABLE);
        let changed = match sim::dice(6) {
            0 => space
                .unmap(part)
                .map(|()| self.world.map(space, first, count)),
            1 => match space.discard(part) {
                // Its memory is locked.
                Err(Error::Invalid { .. }) => Ok(()),
                dropped => dropped,
            },
            2 => space
                .protect(part, Prot::READ)
                .and_then(|()| space.protect(part, Prot::READ_WRITE)),
            3 => space.lock(all, Bring::OnFault),
            4 => space.unlock(all),
            _ => {
                space.exec();
                self.world.map(space, 0, TABLES);
                Ok(())
            }
        };
        changed.expect("changed");
    }
}

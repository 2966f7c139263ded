//! Alan Cox's example (case study 000) with the real reclaimer: a page of a file is unmapped by one
//! CPU, written through the stale translation of another, and written out by a third.
//!
//! Nothing that a task has written is lost, no matter where the page ends up.

use super::alan_cox::{AT, PAGEOUT, WRITER};
use super::pause;
use super::process::enter;
use super::store::{Store, presets, with_parts};
use crate::races::play::{Play, Scenario, Stage};
use crate::vms;
use machine::{Atomic, Atomics, Cpus, Ordering, PAGE_SIZE};
use sim::Sim;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::{Advice, At, Error, Options, Prot, Request, Space, System, Vm};

/// How often the page is sent out.
const ROUNDS: usize = 12;

/// Every preset.
pub fn all() -> Vec<Scenario> {
    let all = presets("write-out", build).into_iter();
    all.map(sized).collect()
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
    scenario.on(3..=4).with_memory(4 << 20)
}

struct World<S: System<Machine = Sim>> {
    vm: Arc<Vm<S>>,
    file: ObjectRef<S>,
    /// A space for each CPU but the writer; the first sends the page out, the others unmap it.
    spaces: Vec<Space<S>>,
    /// The value that was written last.
    last: <Sim as Atomics>::AtomicU64,
}

fn build<S: System<Machine = Sim>>(stage: &Stage, options: Options<S>) -> Play {
    let vm = Vm::with_options(stage.machine.clone(), options).expect("memory for the VM");
    let store = Arc::new(Store::new(1));
    let file = Object::file(&vm, store, PAGE_SIZE as u64).expect("a file");
    let space = |_| {
        let space = Space::new(&vm).expect("a space");
        let request = Request::object(&file, 0, PAGE_SIZE, Prot::READ_WRITE);
        let request = request.expect("aligned").shared();
        space
            .map_as(&request.at(At::Fixed(AT.start)))
            .expect("room");
        space
    };
    let spaces: Vec<_> = (PAGEOUT..stage.jobs).map(space).collect();
    let world = World {
        vm,
        file,
        spaces,
        last: Atomic::new(0),
    };
    Play::new(stage, world, World::job, |world| {
        let mut word = [0; 8];
        assert_eq!(world.file.read(0, &mut word), Ok(8));
        let (found, last) = (u64::from_le_bytes(word), world.last.load(Ordering::Relaxed));
        assert_eq!(found, last, "what was written last is lost");
        let vm = world.vm;
        drop((world.spaces, world.file));
        vms::assert_unused(&vm);
    })
}

impl<S: System<Machine = Sim>> World<S> {
    fn job(&self, cpu: usize) {
        match cpu {
            WRITER => self.write(),
            PAGEOUT => self.page_out(),
            _ => self.unmap(cpu),
        }
    }

    /// Writes the page until all the spaces that unmap it have done so.
    fn write(&self) {
        let mut left: Vec<_> = self.spaces[1..].iter().collect();
        for value in 1.. {
            left.retain(|space| {
                enter(space);
                match space.store(AT.start, value) {
                    Ok(()) => self.last.store(value, Ordering::Relaxed),
                    Err(Error::Segv(_)) => return false,
                    Err(error) => panic!("{error}"),
                }
                true
            });
            if left.is_empty() {
                return;
            }
        }
    }

    fn unmap(&self, cpu: usize) {
        Sim::spin_until(|| self.last.load(Ordering::Acquire) > 0);
        pause(20_000);
        self.spaces[cpu - PAGEOUT].unmap(AT).expect("unmap");
    }

    /// Sends the page out through a mapping of its own.
    fn page_out(&self) {
        let space = &self.spaces[0];
        enter(space);
        for _ in 0..ROUNDS {
            space.load(AT.start).expect("mapped");
            let written = match sim::dice(3) {
                0 => space.sync(AT),
                _ => space.advise(AT, Advice::PageOut),
            };
            written.expect("mapped");
            pause(3_000);
        }
    }
}

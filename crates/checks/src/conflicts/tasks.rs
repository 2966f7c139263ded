//! One pair of operations of tasks that sleep and wake each other, under the scheduler and in the
//! kernel of a preset's system.
//!
//! The tasks of an operation begin on the two CPUs of a socket: one performs it when it is time,
//! and another, if it takes two, answers. They sleep until then, and have performed it several
//! times before, so that everything that is allocated once exists.

use super::commute::Pair;
use super::examine::{Conflict, Phases, conflicts, observe};
use super::operation::Dialogue;
use crate::vms;
use baselines::Preset;
use baselines::selected::AnyKernel;
use bench::ours::scheduler;
use ipc::futex::Name;
use ipc::{Entry, Futexes, Kernel, Pipe};
use machine::{Atomic, Atomics, Clock, Job, Ordering, Tasks, Topology};
use sim::{Options, Sim, Task};
use std::io;
use std::sync::{Arc, OnceLock};
use sync::Padded;

/// The CPUs of each operation: a socket.
const CPUS: [[usize; 2]; 2] = [[0, 1], [2, 3]];
/// Repetitions before the one that counts. One more follows it.
const WARM_UP: u64 = 8;
/// An upper bound of the time that the work of a phase takes, in nanoseconds.
const PHASE: u64 = 1_000_000;
/// Tries with tasks at other addresses. Futexes and sleepers are found by hashing, and two of them
/// may share a bucket by chance: a conflict that is missing in one of the layouts does not count.
const LAYOUTS: usize = 3;
/// Nanoseconds for which a task sleeps.
const NAP: u64 = 20_000;

/// The tasks' world.
struct World {
    kernel: AnyKernel<Sim>,
    futexes: Futexes<Sim>,
    sides: [Padded<Side>; 2],
}

/// The shared objects of an operation's two tasks.
struct Side {
    /// The turn: odd after the first task's turn, even after the second's.
    turn: Padded<<Sim as Atomics>::AtomicU64>,
    tasks: [OnceLock<Task>; 2],
    /// A pipe from the first task to the second, and one back.
    pipes: [Pipe<Sim>; 2],
    futex: Name,
}

/// The conflicts of `pair`, of operations of tasks, in the system of `preset`.
///
/// # Errors
/// If the host has no room for the machine.
pub fn examine(
    pair: &Pair,
    operations: [Dialogue; 2],
    preset: Preset,
) -> io::Result<Vec<Conflict>> {
    let mut found = Vec::new();
    for layout in 0..LAYOUTS {
        found = examine_with(pair, operations, preset, layout)?;
        if found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// The conflicts with this many tasks before those of each operation.
fn examine_with(
    pair: &Pair,
    operations: [Dialogue; 2],
    preset: Preset,
    layout: usize,
) -> io::Result<Vec<Conflict>> {
    let [sockets, cores] = [CPUS.len(), CPUS[0].len()];
    let machine = Sim::new(Options::new(vms::profile(sockets, cores, 1)))?;
    (scheduler::of::<Sim>(preset).install)(&machine)?;
    let range = machine.cpus();
    let world = machine.on_cpu(0, move || {
        let kernel = preset.kernel();
        let futexes = Futexes::new(&kernel, range);
        futexes.label();
        let sides = [1, 2].map(|of| Padded(Side::new(of + 2 * layout as u64)));
        Arc::new(World {
            kernel,
            futexes,
            sides,
        })
    });
    let phases = Phases {
        begin: machine.time(),
        length: PHASE,
    };
    let end = phases.end();
    let bystander = |_| -> (usize, Job) { (CPUS[0][0], Box::new(move || Sim::sleep_until(end))) };
    let mut jobs = Vec::new();
    for (index, operation) in operations.into_iter().enumerate() {
        // These tasks are also created between the sides, because the distance of two addresses
        // determines if their hashes differ.
        jobs.extend((0..layout).map(bystander));
        let talker = |place: usize| Talker {
            world: world.clone(),
            index,
            place,
            operation,
        };
        let (first, second) = (talker(0), talker(1));
        if operation.takes_two() {
            jobs.push((CPUS[index][1], Box::new(move || second.answer())));
        }
        jobs.push((CPUS[index][0], Box::new(move || first.speak(phases))));
    }
    machine.start_on(jobs);
    // All CPUs are observed: some systems let tasks migrate, and nothing else happens at the time.
    let touched = observe(&machine, phases, [&CPUS.concat(), &CPUS.concat()]);
    Ok(conflicts(pair, &touched))
}

impl Side {
    fn new(of: u64) -> Self {
        Side {
            turn: Padded(Atomic::new(0)),
            tasks: [const { OnceLock::new() }; 2],
            pipes: [Pipe::new(), Pipe::new()],
            futex: Name { of, at: 0 },
        }
    }
}

/// A task of an operation: the first or the second.
struct Talker {
    world: Arc<World>,
    index: usize,
    place: usize,
    operation: Dialogue,
}

impl Talker {
    /// Does the operation when it is time.
    fn speak(&self, phases: Phases) {
        self.introduce();
        let mut times = 0;
        phases.each(self.index as u64, WARM_UP, || {
            if self.operation.takes_two() {
                self.give(2 * times + 1);
                self.take(2 * times + 2);
            } else {
                self.within(Entry::Sleep, |kernel| kernel.sleep_until(Sim::now() + NAP))
            }
            times += 1;
        });
    }

    /// Answers each time.
    fn answer(&self) {
        self.introduce();
        for times in 0..WARM_UP + 2 {
            self.take(2 * times + 1);
            self.give(2 * times + 2);
        }
    }

    fn side(&self) -> &Side {
        &self.world.sides[self.index]
    }

    /// Records the calling task's name under its place.
    fn introduce(&self) {
        let told = self.side().tasks[self.place].set(Sim::current_task());
        told.expect("each place has one task");
    }

    fn within<R>(&self, why: Entry, work: impl FnOnce(&AnyKernel<Sim>) -> R) -> R {
        let kernel = &self.world.kernel;
        kernel.enter(why);
        let result = work(kernel);
        kernel.leave(why);
        result
    }

    /// Tells the other task that `turn` has come.
    fn give(&self, turn: u64) {
        let side = self.side();
        side.turn.store(turn, Ordering::Release);
        match self.operation {
            Dialogue::Nap => {}
            Dialogue::Wake => {
                let other = side.tasks[1 - self.place].get();
                other.copied().into_iter().for_each(Sim::unpark);
            }
            Dialogue::Pipe => self.within(Entry::Write, |kernel| {
                let written = side.pipes[self.place].write(kernel, &[1]);
                written.expect("both ends are open");
            }),
            Dialogue::Futex => self.within(Entry::Futex, |kernel| {
                self.world.futexes.wake(kernel, side.futex, 1);
            }),
        }
    }

    /// Sleeps until the other task has said that `turn` has come.
    fn take(&self, turn: u64) {
        let side = self.side();
        let is_early = || side.turn.load(Ordering::Acquire) < turn;
        match self.operation {
            Dialogue::Nap => {}
            Dialogue::Wake => {
                while is_early() {
                    Sim::park();
                }
            }
            Dialogue::Pipe => self.within(Entry::Read, |kernel| {
                side.pipes[1 - self.place].read(kernel, &mut [0]);
            }),
            Dialogue::Futex => {
                while is_early() {
                    self.within(Entry::Futex, |kernel| {
                        let looked = |word: bool| Ok::<_, std::convert::Infallible>(word);
                        let futexes = &self.world.futexes;
                        let Ok(_) = futexes.wait(kernel, side.futex, || looked(is_early()));
                    });
                }
            }
        }
    }
}

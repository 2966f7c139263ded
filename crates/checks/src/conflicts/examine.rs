//! One pair on a machine of its own.
//!
//! Both CPUs repeat their operations until tables exist and caches of frames are filled; then each
//! does it once more, traced, the second when the first has ended, so the touched lines do not
//! depend on the schedule. Writes that bypass the machine, such as to an `Arc`'s count, are found
//! by comparing its heap before and after each.

use super::commute::{Pair, Sharing};
use super::operation::{Operation, Part, Worker};
use crate::sites::{self, Frame};
use crate::vms;
use machine::{Atomic, Atomics, Clock, Job, Ordering, Topology};
use sim::{Access, Options as MachineOptions, Progress, Sim};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use sync::watch::profile;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Options, Space, System, Vm};

/// Sockets and cores a socket; the second CPU is the first of the second socket.
const SOCKETS: usize = 2;
const CORES: usize = 2;
const CPUS: [usize; 2] = [0, CORES];
/// Bytes of physical memory.
const MEMORY: usize = 64 << 20;
/// Slots of swap space.
const SLOTS: u32 = 512;
/// Repetitions before the one that counts.
const WARM_UP: usize = 8;
/// An upper bound of the time that the work of a phase takes, in nanoseconds.
const PHASE: u64 = 20_000_000;
/// The first phases of the preparation, of the operations, and of their undoing.
const PREPARE: u64 = 2;
const PERFORM: u64 = 4;
const UNDO: u64 = 6;
const END: u64 = 8;

/// A line that both have touched and one has written.
pub struct Conflict {
    /// The object there.
    pub what: String,
    /// How the CPUs have used it, in the order of their operations.
    pub uses: [Use; 2],
}

/// How one operation has used a line.
pub struct Use {
    pub operation: Operation,
    /// How often it read the line.
    pub reads: u64,
    /// How often it wrote the line; once if the write bypassed the machine.
    pub writes: u64,
    /// The call site of the first write, else of the first read; the innermost function first.
    pub sites: Vec<Frame>,
}

/// The conflicts of `pair` in a VM with these options.
///
/// # Errors
/// If the host has no room for the machine.
pub fn examine<S: System<Machine = Sim>>(
    pair: &Pair,
    options: Options<S>,
) -> io::Result<Vec<Conflict>> {
    let (machine, phases) = stage(pair, options)?;
    let touched = observe(&machine, phases, [&CPUS[..1], &CPUS[1..]]);
    Ok(conflicts(pair, &touched))
}

/// How often the first operation of `pair` acquires locks of each class, in a VM with these
/// options.
///
/// # Errors
/// If the host has no room for the machine.
pub fn locks<S: System<Machine = Sim>>(
    pair: &Pair,
    options: Options<S>,
) -> io::Result<BTreeMap<&'static str, u64>> {
    let (machine, phases) = stage(pair, options)?;
    run(&machine, phases.time(PERFORM));
    let profile = profile::of(machine.own_anchor());
    profile
        .start(machine.cpus().len())
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    run(&machine, phases.time(PERFORM + 1));
    profile.stop();
    let mut classes = BTreeMap::new();
    for row in profile.report() {
        *classes.entry(row.class).or_default() += row.acquisitions;
    }
    run(&machine, phases.end());
    Ok(classes)
}

/// A machine with the two CPUs at work, before the first phase.
fn stage<S: System<Machine = Sim>>(
    pair: &Pair,
    mut options: Options<S>,
) -> io::Result<(Sim, Phases)> {
    let machine = Sim::new(MachineOptions {
        memory: MEMORY,
        ..MachineOptions::new(vms::profile(SOCKETS, CORES, 1))
    })?;
    let workers = {
        let (machine_of_vm, sharing) = (machine.clone(), pair.sharing);
        machine.on_cpu(0, move || {
            let pager = Box::new(MemoryPager::new());
            let swap = SwapSpace::new(machine_of_vm.cpus(), pager, SLOTS);
            options.swap_space = Some(swap.expect("a swap space"));
            let vm = Vm::with_options(machine_of_vm, options).expect("memory for the VM");
            let file = Worker::file(&vm).expect("a file");
            let space = || Arc::new(Space::new(&vm).expect("a space"));
            let first = space();
            let second = match sharing {
                Sharing::Processes | Sharing::Page => space(),
                Sharing::Threads | Sharing::Tasks => first.clone(),
            };
            [(first, file.clone()), (second, file)]
        })
    };
    let phases = Phases {
        begin: machine.time(),
        length: PHASE,
    };
    let operations = [pair.first, pair.second]
        .into_iter()
        .zip(workers)
        .enumerate();
    let part = match pair.sharing {
        Sharing::Page => Part::Same,
        Sharing::Processes | Sharing::Threads | Sharing::Tasks => Part::Own,
    };
    let jobs = operations.map(|(index, (operation, (space, file)))| {
        let placement = pair.placement;
        let job = move || {
            let worker = Worker::new(operation, space, placement, index, part, file);
            work(worker, phases, index as u64);
        };
        (CPUS[index], Box::new(job) as Job)
    });
    machine.start_on(jobs.collect());
    Ok((machine, phases))
}

/// The times of the phases. Each operation has a phase of its own in each pair of them.
#[derive(Clone, Copy)]
pub(super) struct Phases {
    /// When the first phase begins.
    pub(super) begin: u64,
    /// The length of a phase.
    pub(super) length: u64,
}

impl Phases {
    fn time(self, phase: u64) -> u64 {
        self.begin + phase * self.length
    }

    /// When the last phase ends.
    pub(super) fn end(self) -> u64 {
        self.time(END)
    }

    /// Does the `work` of the operation with this index: `warm_up` times at first, once when it is
    /// observed, and once more. In between the task sleeps.
    pub(super) fn each(self, index: u64, warm_up: u64, mut work: impl FnMut()) {
        let sleep = |phase| Sim::sleep_until(self.time(phase + index) + 1);
        sleep(0);
        (0..warm_up).for_each(|_| work());
        sleep(PERFORM);
        work();
        sleep(UNDO);
        work();
    }

    /// Lets the calling CPU compute until the phase begins.
    fn wait(self, phase: u64) {
        let time = self.time(phase);
        sim::compute(time.saturating_sub(Sim::now()) as f64 + 1.0);
        // A CPU that computes is ahead of the others until it touches memory. This waits for them,
        // so that the trace has begun when the operation does.
        <Sim as Atomics>::AtomicU64::new(0).load(Ordering::Relaxed);
    }
}

/// The lines that the CPUs of an operation have touched.
type Touched = BTreeMap<usize, Access>;

/// Runs the jobs to their end; returns the lines that some CPUs touch in the phase of each
/// operation.
pub(super) fn observe(machine: &Sim, phases: Phases, cpus: [&[usize]; 2]) -> [Touched; 2] {
    run(machine, phases.time(PERFORM));
    let mut before = machine.heap_image();
    let both = [0, 1].map(|index: usize| {
        machine.trace();
        run(machine, phases.time(PERFORM + 1 + index as u64));
        let traced = machine.traced();
        let after = machine.heap_image();
        let changed = machine.changed(&before, &after);
        before = after;
        touched(cpus[index].iter().flat_map(|&cpu| &traced[cpu]), changed)
    });
    run(machine, phases.end());
    both
}

/// The lines that CPUs have touched: those that were traced, and others that they have changed.
fn touched<'a>(traced: impl Iterator<Item = &'a Access>, changed: Vec<Access>) -> Touched {
    let mut touched = Touched::new();
    for access in traced {
        match touched.entry(access.line) {
            Entry::Vacant(place) => _ = place.insert(access.clone()),
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                if known.writes == 0 && access.writes > 0 {
                    known.sites.clone_from(&access.sites);
                }
                known.reads += access.reads;
                known.writes += access.writes;
            }
        }
    }
    for access in changed {
        let known = touched.entry(access.line).or_insert_with(|| access.clone());
        known.writes = known.writes.max(1);
    }
    touched
}

/// The work of the CPU with this worker, phase by phase.
fn work<S: System<Machine = Sim>>(mut worker: Worker<S>, phases: Phases, index: u64) {
    let wait = |phase| phases.wait(phase + index);
    let sound = "the memory is there";
    wait(0);
    worker.activate();
    for _ in 0..WARM_UP {
        worker.cycle().expect(sound);
    }
    wait(PREPARE);
    worker.prepare().expect(sound);
    wait(PERFORM);
    worker.perform().expect(sound);
    wait(UNDO);
    worker.undo().expect(sound);
}

fn run(machine: &Sim, until: u64) {
    if let Progress::Deadlock(why) = machine.run(until) {
        panic!("deadlock: {why}");
    }
}

/// The lines that both CPUs have touched and one has written.
pub(super) fn conflicts(pair: &Pair, [first, second]: &[Touched; 2]) -> Vec<Conflict> {
    let shared = first
        .iter()
        .filter_map(|(line, access)| Some((access, second.get(line)?)));
    let written = shared.filter(|(one, other)| one.writes + other.writes > 0);
    let uses = |operation, access: &Access| Use {
        operation,
        reads: access.reads,
        writes: access.writes,
        sites: sites::frames(&access.sites),
    };
    let conflict = |(one, other): (&Access, &Access)| Conflict {
        what: one.what.clone(),
        uses: [uses(pair.first, one), uses(pair.second, other)],
    };
    written.map(conflict).collect()
}

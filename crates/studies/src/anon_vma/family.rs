//! Children of one process at work, on as many CPUs or on fewer.

use crate::{Effort, Outcome};
use baselines::Preset;
use baselines::selected::Selected;
use bench::Failure;
use bench::ours::{inside, scheduler};
use machine::{Job, PAGE_SIZE, Tasks, Topology, VaRange};
use sim::profile::MachineProfile;
use sim::{Options as MachineOptions, Progress, Sim};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use vm::{Error, HEAP_START, Prot, Vm};

/// A space of any preset: the policies are chosen at run time.
type Space = vm::Space<Selected<Sim>>;

/// Regions of the parent, which holes have made of one mapping: so they have one root. Pages that
/// it has written in each.
const REGIONS: usize = 12;
const PAGES: usize = 4;
/// The address of the first region, and the distance between regions.
const AT: usize = 1 << 41;
const APART: usize = 2 * PAGES * PAGE_SIZE;
/// Pages of the heap that the parent has written.
const HEAP: usize = 16;
/// Pages by which a child moves the end of its heap.
const STEP: usize = 4;
/// Physical memory for each child.
const MEMORY: usize = 4 << 20;
/// Children begin within this number of nanoseconds of each other.
const SPREAD: u64 = 2_000;
/// The warm-up, as a part of the span, after all children have begun.
const WARM_UP: u32 = 4;
/// Simulated nanoseconds within which they must have.
const LIMIT: u64 = 1_000_000_000;

/// The operation that each child repeats.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// Forks a child of its own, which ends at once.
    Fork,
    /// Grows its heap, writes there, and shrinks it again.
    Break,
    /// Unmaps a page in the midst of a region, and maps it again.
    Hole,
}

/// Messages between the host and the CPUs; they cost no simulated time.
struct Board {
    stop: AtomicBool,
    /// Children that have begun.
    begun: AtomicUsize,
    done: AtomicU64,
    failed: AtomicBool,
}

/// The rate of `children` children of one parent, all together.
pub fn rate(
    deed: Deed,
    preset: Preset,
    children: usize,
    profile: &MachineProfile,
    seed: u64,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    let span = effort.span(preset);
    let machine = Sim::new(MachineOptions {
        memory: (children + 1) * MEMORY,
        seed,
        spread: SPREAD,
        ..MachineOptions::new(profile.clone())
    });
    let machine = machine.map_err(Failure::start("simulated machine"))?;
    if children > machine.cpus().len() {
        let scheduler = scheduler::of::<Sim>(preset);
        (scheduler.install)(&machine).map_err(Failure::start("scheduler"))?;
    }
    let done = run(&machine, preset, deed, children, span);
    let done = done.map_err(|why| Failure::Unavailable(format!("{deed:?}: {why}")))?;
    Ok(Outcome::of(done as f64 / span.as_secs_f64()))
}

fn run(
    machine: &Sim,
    preset: Preset,
    deed: Deed,
    children: usize,
    span: Duration,
) -> Result<u64, String> {
    let maker = machine.clone();
    let parent = machine.on_cpu(0, move || parent(maker, preset));
    let parent = parent.map_err(|error| error.to_string())?;
    let board = Arc::new(Board {
        stop: AtomicBool::new(false),
        begun: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    });
    let job = |_| {
        let (parent, board) = (parent.clone(), board.clone());
        Box::new(move || {
            if live(&parent, deed, &board).is_err() {
                board.failed.store(true, Relaxed);
            }
        }) as Job
    };
    machine.start((0..children).map(job).collect());
    let warm_up = (span / WARM_UP).as_nanos() as u64;
    let mut begun = machine.time();
    while board.begun.load(Relaxed) < children && begun < LIMIT {
        begun += warm_up;
        machine.run(begun);
    }
    let counts = [begun + warm_up, begun + warm_up + span.as_nanos() as u64].map(|until| {
        machine.run(until);
        board.done.load(Relaxed)
    });
    board.stop.store(true, Relaxed);
    let [before, after] = counts;
    let rest = machine.run(u64::MAX / 4000);
    machine.on_cpu(0, move || drop(parent));
    match (rest, board.failed.load(Relaxed)) {
        (Progress::Finished, false) => Ok(after - before),
        (Progress::Finished, true) => Err("a call failed".into()),
        (other, _) => Err(format!("{other:?}")),
    }
}

/// The process that all others are copies of, and must not end before.
fn parent(machine: Sim, preset: Preset) -> Result<Arc<Space>, Error> {
    let vm = Vm::with_options(machine, preset.options()).expect("memory for the VM");
    let space = vm::Space::new(&vm)?;
    space.activate();
    space.set_break(HEAP_START + HEAP * PAGE_SIZE)?;
    write(&space, HEAP_START, HEAP)?;
    let whole = VaRange::sized(AT, REGIONS * APART);
    space.map_fixed(whole, Prot::READ_WRITE)?;
    for region in regions() {
        write(&space, region, PAGES)?;
        let hole = VaRange::sized(region + APART / 2, APART / 2);
        space.unmap(hole)?;
    }
    Ok(Arc::new(space))
}

/// A child, until the board says stop.
fn live(parent: &Space, deed: Deed, board: &Board) -> Result<(), Error> {
    let space = parent.fork()?;
    inside(&space, || work(&space, deed, board))
}

fn work(space: &Space, deed: Deed, board: &Board) -> Result<(), Error> {
    // Its pages are its own from now on: children do not wait for their parent's pages.
    write(space, HEAP_START, HEAP)?;
    regions().try_for_each(|region| write(space, region, PAGES))?;
    let end = HEAP_START + HEAP * PAGE_SIZE;
    let hole = VaRange::sized(AT + PAGE_SIZE, PAGE_SIZE);
    board.begun.fetch_add(1, Relaxed);
    while !board.stop.load(Relaxed) {
        sim::system_call();
        match deed {
            Deed::Fork => drop(space.fork()?),
            Deed::Break => {
                space.set_break(end + STEP * PAGE_SIZE)?;
                space.store(end, 1)?;
                space.set_break(end)?;
            }
            Deed::Hole => {
                space.unmap(hole)?;
                space.map_fixed(hole, Prot::READ_WRITE)?;
                space.store(hole.start, 1)?;
            }
        }
        board.done.fetch_add(1, Relaxed);
        // Back from the kernel, a child may lose its CPU.
        Sim::safe_point();
    }
    Ok(())
}

/// The addresses of the regions.
fn regions() -> impl Iterator<Item = usize> {
    (0..REGIONS).map(|number| AT + number * APART)
}

/// Writes the first pages from `start` on.
fn write(space: &Space, start: usize, pages: usize) -> Result<(), Error> {
    (0..pages).try_for_each(|page| space.store(start + page * PAGE_SIZE, 1))
}

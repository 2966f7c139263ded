//! One run: a machine, a lock, some CPUs, a seed.

use super::{DRAINS, ENOUGH, JITTER, Load};
use crate::subject::Subject;
use bench::simulated::DISTURBANCES;
use machine::{Atomics, Clock, Job, SharedCell, Topology};
use sim::profile::MachineProfile;
use sim::{Options, Progress, Sim};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use sync::Padded;

/// Nanoseconds of the first window.
const FIRST_WINDOW: u64 = 20_000;
/// The most windows of that length until each CPU has done an operation.
const FIRST_WINDOWS: u32 = 50;
/// Windows that are discarded, and if they are disturbed, so that each has a few thousand accesses.
const DISCARDED: u32 = 1;
const DISTURBED: u32 = 3;
/// Windows until a run is given up: the last would take a simulated hour.
const WINDOWS: u32 = 27;
/// Operations of one CPU alone before its time is taken, and the number that is timed.
const ALONE: (u64, u64) = (100, 1_000);

/// The CPUs' operations in the window that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// Its length in simulated seconds.
    pub seconds: f64,
    /// Each CPU's operations.
    pub operations: Vec<u64>,
}

impl Sums {
    /// Operations a second, of all CPUs.
    pub fn rate(&self) -> f64 {
        self.operations.iter().sum::<u64>() as f64 / self.seconds
    }
}

/// The lock and the lines that it protects, each on lines of its own.
struct Site<S> {
    subject: Padded<S>,
    load: Load,
    /// Operations so far, once for each line.
    lines: Box<[Padded<<Sim as Atomics>::Cell<u64>>]>,
}

/// Messages between the host and the CPUs; they cost no simulated time.
struct Board {
    stop: AtomicBool,
    operations: Vec<AtomicU64>,
}

impl<S: Subject> Site<S> {
    /// Makes a site on the calling CPU of `sim`, so that it lies in the machine's memory.
    fn new(sim: &Sim, load: Load) -> Arc<Self> {
        let lines = (0..load.lines).map(|_| Padded(SharedCell::new(0)));
        let site = Arc::new(Site {
            subject: Padded(S::new(sim.cpus())),
            load,
            lines: lines.collect(),
        });
        label(&site.subject, "lock");
        for line in &*site.lines {
            label(line, "protected");
        }
        site
    }

    /// Executes the section.
    fn work(&self) {
        for line in &*self.lines {
            if S::EXCLUSIVE {
                let count = line.write();
                // SAFETY: CPUs are coroutines of one thread, and nothing suspends this one
                // within the statement.
                unsafe { *count += 1 };
            } else {
                line.read();
            }
        }
        sim::compute(self.load.section);
    }

    /// A CPU's job: operates until the board says stop.
    fn repeat(&self, board: &Board, task: usize) {
        let mut own = self.subject.own();
        while !board.stop.load(Relaxed) {
            for left in (0..self.load.times).rev() {
                self.subject.operate(&mut own, || self.work());
                if left == 0 {
                    board.operations[task].fetch_add(1, Relaxed);
                }
                sim::compute(private(self.load.private));
            }
        }
    }

    /// Checks the lock and its lines after all CPUs have left.
    fn verify(&self, operations: u64) -> Result<(), String> {
        for line in self.lines.iter().filter(|_| S::EXCLUSIVE) {
            // SAFETY: all CPUs have left.
            let count = unsafe { *line.read() };
            if count != operations {
                let why = format!("{operations} critical sections left {count} in a counter");
                return Err(why);
            }
        }
        self.subject.verify(operations)
    }
}

fn label<T>(what: &Padded<T>, name: &'static str) {
    let address = core::ptr::from_ref(what).cast();
    Sim::label(address, size_of::<Padded<T>>(), name);
}

/// Draws the nanoseconds of private work of one operation.
fn private(average: f64) -> f64 {
    const STEPS: u64 = 1_000;
    let share = sim::dice(STEPS + 1) as f64 / STEPS as f64;
    average * (1.0 + JITTER * (2.0 * share - 1.0))
}

/// A machine whose CPUs begin within the time of one operation.
fn machine(profile: &MachineProfile, load: &Load, seed: u64) -> Result<Sim, String> {
    let options = Options {
        seed,
        spread: load.private as u64,
        ..Options::new(profile.clone())
    };
    Sim::new(options).map_err(|error| error.to_string())
}

/// A CPU's report, in memory that outlives its machine.
fn kept(said: Result<(), String>) -> Result<(), String> {
    said.map_err(|why| why.as_str().to_owned())
}

/// Nanoseconds of one operation on one CPU, nothing inside.
///
/// # Errors
/// The error.
pub fn alone<S: Subject>(profile: &MachineProfile) -> Result<f64, String> {
    let sim = machine(profile, &Load::default(), 0)?;
    let cpus = sim.cpus();
    let (nanoseconds, verified) = sim.on_cpu(0, move || {
        let subject = Padded(S::new(cpus));
        let mut own = subject.own();
        let mut repeat = |operations| {
            let before = Sim::now();
            for _ in 0..operations {
                subject.operate(&mut own, || ());
            }
            Sim::now() - before
        };
        repeat(ALONE.0);
        let nanoseconds = repeat(ALONE.1) as f64 / ALONE.1 as f64;
        drop(own);
        (nanoseconds, subject.verify(ALONE.0 + ALONE.1))
    });
    kept(verified).map(|()| nanoseconds)
}

/// The rates of `cpus` CPUs together; the windows are described in [`super`].
///
/// # Errors
/// The error.
pub fn contended<S: Subject>(
    profile: &MachineProfile,
    load: &Load,
    cpus: usize,
    seed: u64,
) -> Result<Sums, String> {
    let sim = machine(profile, load, seed)?;
    let site = {
        let (clone, load) = (sim.clone(), *load);
        sim.on_cpu(0, move || Site::<S>::new(&clone, load))
    };
    let board = Arc::new(Board {
        stop: AtomicBool::new(false),
        operations: (0..cpus).map(|_| AtomicU64::new(0)).collect(),
    });
    let job = |task: usize| {
        let (site, board) = (site.clone(), board.clone());
        let job = Box::new(move || site.repeat(&board, task)) as Job;
        (load.place.cpu(&profile.topology, task), job)
    };
    sim.start_on((0..cpus).map(job).collect());
    let sums = windows(&sim, &board, load.disturbed)?;
    board.stop.store(true, Relaxed);
    advance(&sim, u64::MAX / 4_000)?;
    let operations: u64 = board.counts().iter().sum();
    let sections = operations * u64::from(load.times);
    kept(sim.on_cpu(0, move || site.verify(sections)))?;
    Ok(sums)
}

/// Runs windows until one counts.
fn windows(sim: &Sim, board: &Board, disturbed: bool) -> Result<Sums, String> {
    let discarded = if disturbed { DISTURBED } else { DISCARDED };
    if disturbed {
        sim.disturb(DISTURBANCES);
    }
    let enough = ENOUGH.max(DRAINS * board.operations.len() as u64);
    let begin = first(sim, board)?;
    let mut before = board.counts();
    let mut from = 0;
    for window in 0..WINDOWS {
        if window == discarded {
            sim.calm();
        }
        let until = FIRST_WINDOW << window;
        advance(sim, begin + until)?;
        let now = board.counts();
        let operations: Vec<u64> = now.iter().zip(&before).map(|(a, b)| a - b).collect();
        if window >= discarded && operations.iter().sum::<u64>() >= enough {
            return Ok(Sums {
                seconds: (until - from) as f64 / 1e9,
                operations,
            });
        }
        (from, before) = (until, now);
    }
    Err("makes no progress".into())
}

/// Runs until each CPU has done an operation, since the first may take far longer than others;
/// returns when that was. A CPU that a lock starves is not waited for endlessly.
fn first(sim: &Sim, board: &Board) -> Result<u64, String> {
    let mut now = sim.time();
    for _ in 0..FIRST_WINDOWS {
        if board.counts().iter().all(|&count| count > 0) {
            break;
        }
        now += FIRST_WINDOW;
        advance(sim, now)?;
    }
    Ok(now)
}

fn advance(sim: &Sim, until: u64) -> Result<(), String> {
    match sim.run(until) {
        Progress::Finished | Progress::Running => Ok(()),
        Progress::Deadlock(why) => Err(why),
    }
}

impl Board {
    fn counts(&self) -> Vec<u64> {
        let operations = self.operations.iter();
        operations.map(|count| count.load(Relaxed)).collect()
    }
}

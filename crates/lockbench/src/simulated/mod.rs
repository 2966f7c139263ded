//! The lock micro-benchmark on the simulated machine (case study 004): one lock, more and more
//! CPUs of a machine like a [`MachineProfile`].
//!
//! Each CPU repeats: lock, a short section, unlock, private work. The sizes are a [`Load`]. By
//! default they are those of case study 004's `lock1` (file locks) in a kernel that keeps them
//! under one spin lock:
//!
//! | size | default | what it stands for |
//! |---|---|---|
//! | [`Load::lines`] | 2 | lines the section writes: the head of a list and its first entry |
//! | [`Load::section`] | 40 ns | what the section computes: 92 cycles of FOPS (Boyd-Wickizer et al., 2012) |
//! | [`Load::private`] | 600 ns | the rest of a system call: `lock2` alone, 1.605 M/s (Kogan, CNA v14) |
//! | [`JITTER`] | ± 20 % | of the private work, drawn anew each time |
//!
//! A run goes through windows from when each CPU has done an operation, each as long as all before
//! it, until one holds [`DRAINS`] × CPUs operations ([`ENOUGH`] at least); that window counts. So
//! the filling of the queue is discarded, and the window that counts is many times as long as the
//! queue takes to drain. Readers only read the lines, and run together.

mod run;

use super::registry::Row;
use super::schedule::median;
use super::subject::{Subject, wrong};
use bench::Failure;
use bench::simulated::Placement;
use run::{Sums, alone, contended};
use sim::profile::MachineProfile;
use std::ops::Range;

/// What a CPU does between locking and unlocking, and until it locks again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Lines that a section writes (a reader: reads); [`MOST_LINES`] at most.
    pub lines: usize,
    /// Nanoseconds that a section computes besides.
    pub section: f64,
    /// Nanoseconds between two sections of a CPU, on average.
    pub private: f64,
    /// Sections of an operation; at least 1.
    pub times: u32,
    /// The CPUs that operate on the lock.
    pub place: Placement,
    /// True if accesses are delayed at random until the window that counts, as in
    /// [`Conditions::disturbed`](bench::simulated::Conditions::disturbed).
    pub disturbed: bool,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            lines: 2,
            section: 40.0,
            private: 600.0,
            times: 1,
            place: Placement::Pack,
            disturbed: false,
        }
    }
}

/// Lines of a section, at most.
pub const MOST_LINES: usize = 64;
/// The share by which private work varies, to either side.
pub const JITTER: f64 = 0.2;
/// Operations a CPU, on average, in the window that counts.
pub const DRAINS: u64 = 20;
/// Operations in the window that counts, at least.
pub const ENOUGH: u64 = 2_000;

/// The results for one number of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The number of CPUs.
    pub cpus: usize,
    /// Operations a second of all together.
    pub throughput: Throughput,
    /// How evenly the CPUs acquired the lock; median over seeds.
    pub fairness: Fairness,
    /// The slowest and the fastest CPU's operations a second, over all seeds.
    pub per_cpu: (f64, f64),
    /// Operations in the windows that count, of all seeds.
    pub operations: u64,
    /// Simulated seconds of those windows.
    pub seconds: f64,
}

/// A figure over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// The middle.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

/// How evenly CPUs acquired the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fairness {
    /// Acquisitions of the CPU with the fewest, over those of the one with the most.
    pub extremes: f64,
    /// Jain's index: 1 if all CPUs had the same number, 1/n if one had all.
    pub jain: f64,
}

/// How a row runs on the simulated machine.
#[derive(Clone, Copy)]
pub struct Simulated {
    alone: fn(&MachineProfile) -> Result<f64, String>,
    contended: fn(&MachineProfile, &Load, usize, u64) -> Result<Sums, String>,
}

impl Simulated {
    /// Runs the subject `S`.
    pub(super) const fn of<S: Subject>() -> Self {
        Simulated {
            alone: alone::<S>,
            contended: contended::<S>,
        }
    }
}

/// Nanoseconds that one CPU takes for an operation of `lock`, with nothing inside.
///
/// # Errors
/// The lock is not simulated, or the host has no room for the machine.
pub fn uncontended(profile: &MachineProfile, lock: &Row) -> Result<f64, Failure> {
    (machine(lock)?.alone)(profile).map_err(|why| wrong(lock.name, 1, why))
}

/// The curve of `lock` under `load` on a machine like `profile`: a point for each of `counts`, of a
/// run with each of `seeds`. The same arguments give the same curve.
///
/// # Errors
/// The lock is not simulated or does not work, the machine has fewer CPUs, or the host no
/// room for it.
pub fn curve(
    profile: &MachineProfile,
    lock: &Row,
    load: &Load,
    counts: &[usize],
    seeds: &Range<u64>,
) -> Result<Vec<Point>, Failure> {
    let points = counts
        .iter()
        .map(|&cpus| point(profile, lock, load, cpus, seeds));
    points.collect()
}

fn point(
    profile: &MachineProfile,
    lock: &Row,
    load: &Load,
    cpus: usize,
    seeds: &Range<u64>,
) -> Result<Point, Failure> {
    let most = profile.cpus();
    if !(1..=most).contains(&cpus) {
        let why = format!("{} has {most} CPUs, not {cpus}", profile.name);
        return Err(Failure::Unavailable(why));
    }
    let run = machine(lock)?.contended;
    let runs = seeds.clone().map(|seed| run(profile, load, cpus, seed));
    let runs: Result<Vec<Sums>, String> = runs.collect();
    let runs = runs.map_err(|why| wrong(lock.name, cpus, why))?;
    Ok(summary(cpus, &runs))
}

/// This load with a time between sections at which `cpus` CPUs do `rate` operations a second.
///
/// # Errors
/// No such time makes that rate ([`Failure::NotFitted`]), or those of [`curve`].
pub fn fitted(
    profile: &MachineProfile,
    lock: &Row,
    load: &Load,
    cpus: usize,
    rate: f64,
    seed: u64,
) -> Result<Load, Failure> {
    /// The number of times that it is changed, and the accepted error of the rate.
    const ROUNDS: usize = 4;
    const CLOSE: f64 = 0.01;
    let mut fitted = *load;
    for _ in 0..=ROUNDS {
        let seeds = seed..seed + 1;
        let now = point(profile, lock, &fitted, cpus, &seeds)?
            .throughput
            .median;
        if (now / rate - 1.0).abs() <= CLOSE {
            return Ok(fitted);
        }
        let missing = cpus as f64 * (1e9 / rate - 1e9 / now) / f64::from(load.times);
        fitted.private = (fitted.private + missing).max(0.0);
    }
    Err(Failure::NotFitted(format!(
        "{}: {rate:.0} operations a second are not reached, whatever passes between sections",
        lock.name
    )))
}

/// Where counts of CPUs are interesting on a machine: powers of two in the first socket's
/// cores, then one, two, four, … sockets of cores, then of threads, up to all CPUs.
pub fn counts(profile: &MachineProfile) -> Vec<usize> {
    let doubling = |first: usize, end: usize| {
        std::iter::successors(Some(first), |n| Some(2 * n)).take_while(move |&n| n < end)
    };
    let (socket, all) = (profile.topology.cores, profile.cpus());
    let counts = doubling(1, socket).chain(doubling(socket, all));
    counts.chain([all]).collect()
}

/// Why `lock` is not simulated.
pub fn unavailable(lock: &Row) -> Failure {
    let name = lock.name;
    Failure::Unavailable(format!("{name} cannot be simulated"))
}

fn machine(lock: &Row) -> Result<Simulated, Failure> {
    lock.simulated.ok_or_else(|| unavailable(lock))
}

fn summary(cpus: usize, runs: &[Sums]) -> Point {
    let mut rates: Vec<f64> = runs.iter().map(Sums::rate).collect();
    let mut extremes: Vec<f64> = runs.iter().map(|run| extremes(&run.operations)).collect();
    let mut jain: Vec<f64> = runs.iter().map(|run| jain(&run.operations)).collect();
    let seconds = runs.iter().map(|run| run.seconds).sum();
    let each: Vec<u64> = (0..cpus)
        .map(|cpu| runs.iter().map(|run| run.operations[cpu]).sum())
        .collect();
    let rate = |operations: Option<&u64>| operations.map_or(0.0, |&n| n as f64 / seconds);
    let middle = |values: &mut [f64]| median(values).unwrap_or(0.0);
    Point {
        cpus,
        throughput: Throughput {
            median: middle(&mut rates),
            // Sorted by now.
            low: rates.first().copied().unwrap_or(0.0),
            high: rates.last().copied().unwrap_or(0.0),
        },
        fairness: Fairness {
            extremes: middle(&mut extremes),
            jain: middle(&mut jain),
        },
        per_cpu: (rate(each.iter().min()), rate(each.iter().max())),
        operations: each.iter().sum(),
        seconds,
    }
}

fn extremes(operations: &[u64]) -> f64 {
    let (least, most) = (operations.iter().min(), operations.iter().max());
    match (least, most) {
        (Some(&least), Some(&most)) if most > 0 => least as f64 / most as f64,
        _ => 0.0,
    }
}

fn jain(operations: &[u64]) -> f64 {
    let sum: f64 = operations.iter().map(|&n| n as f64).sum();
    let squares: f64 = operations.iter().map(|&n| (n as f64).powi(2)).sum();
    if squares > 0.0 {
        sum * sum / (operations.len() as f64 * squares)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;

//! One machine, and the runs on it.

use super::{Point, Spread};
use crate::harness::{Failure, interrupt};
use crate::output::progress::Progress;
use crate::simulated::Attribution;
use baselines::selected::Preset;
use sim::profile::Profile;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Threads of this computer that simulate: each holds a machine's memory.
const MOST_THREADS: usize = 16;

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The first seed; the next ones count up.
    pub first: u64,
    /// Runs of each point on the machine itself.
    pub seeds: u64,
    /// And on each corner.
    pub corner_seeds: u64,
    /// Simulated time of a run in which tasks wait for locks: several of the longest
    /// back-offs.
    pub contended: Duration,
    /// And of one in which they do not.
    pub free: Duration,
}

impl Effort {
    /// For figures worth quoting.
    pub fn full(seeds: u64) -> Self {
        Effort {
            first: 1,
            seeds,
            corner_seeds: seeds.min(3),
            contended: Duration::from_millis(10),
            free: Duration::from_millis(2),
        }
    }

    /// For a look: within a minute.
    pub fn quick(seeds: u64) -> Self {
        Effort {
            first: 1,
            seeds,
            corner_seeds: 1,
            contended: Duration::from_millis(5),
            free: Duration::from_micros(500),
        }
    }

    /// How long mmap1 is measured.
    pub fn span(&self, preset: Preset) -> Duration {
        match preset {
            Preset::Scalevm => self.free,
            _ => self.contended,
        }
    }
}

/// A machine, its corners, and what was measured on them.
pub struct Lab {
    /// The machine itself, then the corners that differ from it.
    machines: Vec<Profile>,
    effort: Effort,
    results: Vec<(Run, f64)>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    point: Point,
    /// Index of the machine.
    machine: usize,
    seed: u64,
}

/// One machine of a lab, and what was measured on it.
pub struct World<'a> {
    lab: &'a Lab,
    machine: usize,
}

impl Lab {
    /// A lab with nothing done yet.
    pub fn new(machine: Profile, effort: Effort) -> Self {
        let same = |corner: &Profile| {
            let (here, there) = (&machine.transfer, &corner.transfer);
            here.legs == there.legs && here.arbitration == there.arbitration
        };
        let corners: Vec<Profile> = machine.corners().into_iter().filter(|c| !same(c)).collect();
        let machines = [machine].into_iter().chain(corners).collect();
        Lab {
            machines,
            effort,
            results: Vec::new(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Profile {
        &self.machines[0]
    }

    /// How many seeds a figure is the median of.
    pub fn seeds(&self) -> u64 {
        self.effort.seeds
    }

    /// How many runs `points` take.
    pub fn runs(&self, points: &[Point]) -> u64 {
        self.plan(points).len() as u64
    }

    /// Does the runs, those of different points at the same time: none depends on another.
    /// `false` if the user interrupts.
    pub fn measure(&mut self, points: &[Point], progress: &Progress) -> Result<bool, Failure> {
        let runs = self.plan(points);
        let done: Vec<Mutex<Option<Result<f64, Failure>>>> =
            runs.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((run, done)) = take(&next, &runs, &done) {
                let machine = &self.machines[run.machine];
                progress.point(&format!("{}, {} CPUs", machine.name, run.point.cpus()));
                let result = run.point.run(machine, run.seed, &self.effort);
                *done.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                progress.step();
            }
        };
        let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        for (run, done) in runs.iter().zip(done) {
            match done.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(result) => self.results.push((*run, result?)),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The runs of `points` that the machine has CPUs for, the longest first.
    fn plan(&self, points: &[Point]) -> Vec<Run> {
        let cpus = self.machine().cpus();
        let mut runs = Vec::new();
        for &point in points.iter().filter(|point| point.cpus() <= cpus) {
            for machine in 0..self.machines.len() {
                let seeds = match (machine, point) {
                    (_, Point::Uncontended { .. }) => 1,
                    (0, _) => self.effort.seeds,
                    _ => self.effort.corner_seeds,
                };
                let run = |seed| Run {
                    point,
                    machine,
                    seed,
                };
                let first = self.effort.first;
                runs.extend(
                    (first..first + seeds)
                        .map(run)
                        .filter(|run| self.get(run).is_none()),
                );
            }
        }
        runs.sort_by_key(|run| std::cmp::Reverse(run.point.cpus()));
        let mut unique: Vec<Run> = Vec::new();
        runs.retain(|run| {
            let new = !unique.contains(run);
            unique.extend(new.then_some(*run));
            new
        });
        runs
    }

    fn get(&self, run: &Run) -> Option<f64> {
        let found = self.results.iter().find(|(other, _)| other == run);
        found.map(|&(_, value)| value)
    }

    /// A figure made of what was measured: of the machine over its seeds, and the medians
    /// of the corners. `None` if the machine has too few CPUs for it.
    pub fn figure(
        &self,
        quantity: impl Fn(&World) -> Option<Vec<f64>>,
    ) -> Option<(Spread, Vec<f64>)> {
        let of = |machine| Spread::of(quantity(&World { lab: self, machine })?);
        let corners: Option<Vec<f64>> = (1..self.machines.len())
            .map(|machine| of(machine).map(|spread| spread.median))
            .collect();
        Some((of(0)?, corners?))
    }

    /// Where the time of a run of mmap1 goes; runs it.
    pub fn attribute(&self, point: Point) -> Result<Attribution, Failure> {
        point.attribute(self.machine(), &self.effort)
    }
}

impl World<'_> {
    /// What was measured of `point`, by seed.
    pub fn of(&self, point: Point) -> Option<Vec<f64>> {
        let run = |seed| Run {
            point,
            machine: self.machine,
            seed,
        };
        let values: Vec<f64> = (self.lab.effort.first..)
            .map_while(|seed| self.lab.get(&run(seed)))
            .collect();
        (!values.is_empty()).then_some(values)
    }

    /// The same of `a` divided by that of `b`, seed by seed.
    pub fn ratio(&self, a: Point, b: Point) -> Option<Vec<f64>> {
        let (a, b) = (self.of(a)?, self.of(b)?);
        Some(a.iter().zip(b).map(|(a, b)| a / b).collect())
    }
}

/// The next run that nobody does, and where its result goes.
fn take<'a, R>(next: &AtomicUsize, runs: &'a [Run], done: &'a [R]) -> Option<(&'a Run, &'a R)> {
    if interrupt::pending().is_some() {
        return None;
    }
    // Relaxed: only that no two get the same number matters.
    let index = next.fetch_add(1, Relaxed);
    Some((runs.get(index)?, &done[index]))
}

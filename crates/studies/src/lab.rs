//! One machine, and the runs on it.

use super::{Outcome, Point, Spread};
use baselines::Preset;
use bench::simulated::AT_ONCE;
use bench::{Failure, Progress, Workers};
use sim::profile::MachineProfile;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// The effort: the number and the length of runs.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The first seed; the next ones count up.
    pub first: u64,
    /// Runs of each point on the machine itself.
    pub seeds: u64,
    pub corner_seeds: u64,
    /// Simulated time of a run in which tasks wait for locks: several of the longest
    /// back-offs.
    pub contended: Duration,
    /// And of one in which they do not.
    pub free: Duration,
}

impl Effort {
    /// The effort for figures worth quoting.
    pub fn full(seeds: u64) -> Self {
        Effort {
            first: 1,
            seeds,
            corner_seeds: seeds.min(3),
            contended: Duration::from_millis(10),
            free: Duration::from_millis(2),
        }
    }

    /// The effort for a quick result: within a minute.
    pub fn quick(seeds: u64) -> Self {
        Effort {
            first: 1,
            seeds,
            corner_seeds: 1,
            contended: Duration::from_millis(5),
            free: Duration::from_micros(500),
        }
    }

    /// The time for which a workload without an end is measured.
    pub fn span(&self, preset: Preset) -> Duration {
        if preset == Preset::SCALEVM {
            return self.free;
        }
        self.contended
    }
    /// Seeds of a point on the machine itself, or on each corner.
    fn seeds(&self, point: Point, corner: bool) -> u64 {
        let usual = if corner {
            self.corner_seeds
        } else {
            self.seeds
        };
        match (point, corner) {
            (Point::Uncontended { .. }, _) => 1,
            _ if point.is_single() => u64::from(!corner),
            (_, false) if point.is_long() => usual.min(3),
            // Nothing with one seed: that asks for a quick result.
            (_, true) if point.is_long() => u64::from(self.seeds > 1),
            _ => usual,
        }
    }
}

/// A machine, its *corners* (variants at the extremes of its unpublished properties), and the
/// measurements on them.
pub struct Lab {
    /// The machine itself, then the corners that differ from it.
    machines: Vec<MachineProfile>,
    effort: Effort,
    results: Vec<Done>,
    /// Runs that came to nothing.
    failures: Vec<Failure>,
    /// The points that have been measured, or could not be.
    measured: Vec<Point>,
    /// The points that figures have asked for in addition.
    wanted: RefCell<Vec<Point>>,
    /// True while figures only ask for runs.
    is_asked: Cell<bool>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    point: Point,
    /// Index of the machine.
    machine: usize,
    seed: u64,
}

impl Run {
    /// Its cost, relative to others that are about as long.
    fn work(&self) -> u64 {
        self.point.cpus() as u64
    }
}

/// One that is over.
struct Done {
    run: Run,
    outcome: Outcome,
    /// Seconds it took on this computer; the first reader of the outcome takes them away.
    seconds: Cell<f64>,
}

/// One machine of a lab, and the measurements on it.
pub struct World<'a> {
    lab: &'a Lab,
    machine: usize,
    /// Of the runs that it was the first to read.
    seconds: Cell<f64>,
}

/// A figure made of measurements.
pub struct Figure {
    /// On the machine, over its seeds.
    pub ours: Spread,
    /// Medians on the corners on which it was measured.
    pub corners: Vec<f64>,
    /// Seconds on this computer of the runs that no earlier figure was made of.
    pub seconds: f64,
}

impl Lab {
    /// A lab with nothing done yet.
    pub fn new(machine: MachineProfile, effort: Effort) -> Self {
        let same = |corner: &MachineProfile| {
            let (here, there) = (&machine.transfer, &corner.transfer);
            here.legs == there.legs && here.arbitration == there.arbitration
        };
        let corners: Vec<MachineProfile> =
            machine.corners().into_iter().filter(|c| !same(c)).collect();
        let machines = [machine].into_iter().chain(corners).collect();
        Lab {
            machines,
            effort,
            results: Vec::new(),
            failures: Vec::new(),
            measured: Vec::new(),
            wanted: RefCell::default(),
            is_asked: Cell::new(false),
        }
    }

    /// Why runs failed; quantities that need them have no figure.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The runs that `figures` need and the machine has CPUs for, as far as they are still to be
    /// measured. Each value that is missing is taken to be 1, so that figures ask for all their
    /// runs at once.
    ///
    /// # Errors
    /// Those of `figures`.
    pub fn wanted(
        &self,
        figures: impl FnOnce(&Self) -> Result<(), Failure>,
    ) -> Result<Vec<Point>, Failure> {
        self.is_asked.set(true);
        let asked = figures(self);
        self.is_asked.set(false);
        asked.map(|()| self.wanted.take())
    }

    /// Asks for the run of `point`. Returns true if it is possible and still to be done.
    fn ask_for(&self, point: Point) -> bool {
        let is_due = point.cpus() <= self.machine().cpus() && !self.measured.contains(&point);
        let mut wanted = self.wanted.borrow_mut();
        if is_due && !wanted.contains(&point) {
            wanted.push(point);
        }
        is_due
    }

    pub fn machine(&self) -> &MachineProfile {
        &self.machines[0]
    }

    /// The number of seeds whose median a figure is.
    pub fn seeds(&self) -> u64 {
        self.effort.seeds
    }

    /// The work of each run that `points` take.
    pub fn works(&self, points: &[Point]) -> Vec<u64> {
        self.plan(points).iter().map(Run::work).collect()
    }

    /// Does the runs, several at the same time: none depends on another. Returns false if the user
    /// interrupts.
    pub fn measure(&mut self, points: &[Point], progress: &dyn Progress) -> bool {
        let runs = self.plan(points);
        self.measured.extend(points);
        let do_it = |run: &Run| {
            let machine = &self.machines[run.machine];
            progress.point(&format!("{}, {} CPUs", machine.name, run.point.cpus()));
            let began = Instant::now();
            let outcome = run.point.run(machine, run.seed, &self.effort);
            progress.worked(run.work());
            outcome.map(|outcome| (outcome, began.elapsed().as_secs_f64()))
        };
        let mut done = 0;
        let (results, failures) = (&mut self.results, &mut self.failures);
        let Ok(()) = Workers::here(AT_ONCE).run(&runs, do_it, |run, outcome| {
            done += 1;
            match outcome {
                Ok((outcome, seconds)) => results.push(Done {
                    run: *run,
                    outcome,
                    seconds: Cell::new(seconds),
                }),
                Err(failure) => failures.push(failure),
            }
            Ok::<_, Infallible>(())
        });
        done == runs.len()
    }

    /// The runs of `points`, the longest first.
    fn plan(&self, points: &[Point]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for &point in points {
            for machine in 0..self.machines.len() {
                let first = self.effort.first;
                for seed in first..first + self.effort.seeds(point, machine > 0) {
                    let run = Run {
                        point,
                        machine,
                        seed,
                    };
                    if self.get(&run).is_none() && !runs.contains(&run) {
                        runs.push(run);
                    }
                }
            }
        }
        runs.sort_by_key(|run| std::cmp::Reverse((run.point.is_long(), run.point.cpus())));
        runs
    }

    fn get(&self, run: &Run) -> Option<&Done> {
        self.results.iter().find(|done| done.run == *run)
    }

    /// A figure made of measurements. `None` if the machine has too few CPUs for it.
    pub fn figure(&self, quantity: &dyn Fn(&World) -> Option<Vec<f64>>) -> Option<Figure> {
        let seconds = Cell::new(0.0);
        let of = |machine| {
            let world = World {
                lab: self,
                machine,
                seconds: Cell::new(0.0),
            };
            let spread = Spread::of(quantity(&world)?);
            seconds.set(seconds.get() + world.seconds.get());
            spread
        };
        let ours = of(0)?;
        let corners = (1..self.machines.len()).filter_map(of);
        let corners = corners.map(|spread| spread.median).collect();
        Some(Figure {
            ours,
            corners,
            seconds: seconds.get(),
        })
    }

    /// The outcome of the first run of `point` on the machine itself, for remarks on a figure.
    pub fn first(&self, point: impl Into<Point>) -> Option<&Outcome> {
        let run = Run {
            point: point.into(),
            machine: 0,
            seed: self.effort.first,
        };
        self.ask_for(run.point);
        Some(&self.get(&run)?.outcome)
    }
}

impl World<'_> {
    /// The values of `quantity` in the runs of `point`, by seed.
    pub fn each(
        &self,
        point: impl Into<Point>,
        quantity: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        self.runs(point.into(), &quantity)
    }

    /// The values of a `quantity` of any type in the runs of `point`, by seed.
    fn runs(&self, point: Point, quantity: &dyn Fn(&Outcome) -> Option<f64>) -> Option<Vec<f64>> {
        let lab = self.lab;
        if lab.ask_for(point) && lab.is_asked.get() {
            return Some(vec![1.0; lab.effort.seeds as usize]);
        }
        let run = |seed| Run {
            point,
            machine: self.machine,
            seed,
        };
        let done = (self.lab.effort.first..).map_while(|seed| self.lab.get(&run(seed)));
        let values = done.map(|done| {
            if !lab.is_asked.get() {
                self.seconds.set(self.seconds.get() + done.seconds.take());
            }
            quantity(&done.outcome)
        });
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        (!values.is_empty()).then_some(values)
    }

    /// The values of `point`, by seed.
    pub fn of(&self, point: impl Into<Point>) -> Option<Vec<f64>> {
        self.each(point, |outcome| Some(outcome.value))
    }

    /// The value of `a` divided by that of `b`, seed by seed.
    pub fn ratio(&self, a: impl Into<Point>, b: impl Into<Point>) -> Option<Vec<f64>> {
        self.ratio_of(a, b, |outcome| Some(outcome.value))
    }

    /// The values of `quantity` in `a` divided by those in `b`, seed by seed.
    pub fn ratio_of(
        &self,
        a: impl Into<Point>,
        b: impl Into<Point>,
        quantity: impl Fn(&Outcome) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let (a, b) = (self.each(a, &quantity)?, self.each(b, &quantity)?);
        Some(a.iter().zip(b).map(|(a, b)| a / b).collect())
    }
}

#[cfg(test)]
impl Lab {
    /// All runs of `points` are done, and had this outcome.
    pub fn pretend(&mut self, points: &[Point], outcome: &Outcome) {
        let runs = self.plan(points);
        self.measured.extend(points);
        self.results.extend(runs.into_iter().map(|run| Done {
            run,
            outcome: outcome.clone(),
            seconds: Cell::new(0.0),
        }));
    }

    /// The runs of `point` came to nothing.
    pub fn fail(&mut self, point: Point) {
        self.measured.push(point);
    }
}

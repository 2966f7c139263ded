//! Published curves, predicted.
//!
//! [`Mapping`] says which system and machine stand in for a curve's own; [`Setup`] is one curve's
//! plan. [`Setup::predict`] fits one time at the fewest tasks that were measured, and simulates the
//! others. [`score`] compares the predictions with the measurements, and so it does the Universal
//! Scalability Law and perfect scaling. [`is_held_back`] chooses the sources that are reserved for
//! validation: nobody looks at their curves while the simulator is being corrected.

mod mapping;
mod runner;
pub mod score;
mod work;

pub use mapping::{Mapping, Setting, StandIn};

use crate::published::{Curve, Point, Unit, rate_at};
use bench::simulated::{Expected, Mechanism};
use bench::{Failure, Job, Progress, interrupt};
use fnv::FnvHasher;
use runner::Runner;
use sim::profile::MachineProfile;
use std::hash::Hasher;
use std::ops::Range;

/// The amount of simulation.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The most counts of tasks in addition to the fewest.
    pub counts: usize,
    /// Each count is run with each of these.
    pub seeds: Range<u64>,
}

/// The runs to make for a curve.
#[derive(Debug)]
pub struct Setup<'a> {
    pub curve: &'a Curve,
    /// The work of its tasks; none if a lock represents the kernel.
    pub job: Option<Job>,
    /// The system that represents the kernel.
    pub before: StandIn,
    /// The system that represents the changed side, if it is a pair; or why nothing does.
    pub after: Option<Result<StandIn, String>>,
    /// The simulated machine.
    pub machine: MachineProfile,
}

impl<'a> Setup<'a> {
    /// The setup of a curve, or the reason why it is not predicted.
    pub fn of(curve: &'a Curve, mapping: &Mapping) -> Result<Self, String> {
        let stand_in = |kernel: &str| mapping.stand_in(kernel, &curve.workload, curve.mode);
        let before = stand_in(&curve.kernel)?;
        let after = curve.after.as_ref().map(|after| stand_in(&after.kernel));
        let machine = mapping.machine(&curve.machine)?;
        let job = workloads::find(&curve.workload).map(Job::Known);
        Setup::with(curve, job, before, after, machine)
    }

    /// The setup of a curve, whose tasks do `job`, on a machine, with these systems for its
    /// kernels; or the reason why it is not predicted.
    pub fn with(
        curve: &'a Curve,
        job: Option<Job>,
        before: StandIn,
        after: Option<Result<StandIn, String>>,
        machine: MachineProfile,
    ) -> Result<Self, String> {
        let setup = Setup {
            curve,
            job,
            before,
            after: after.map(|after| match after? {
                same if same == before => Err(format!("both sides are {same}")),
                other => Ok(other),
            }),
            machine,
        };
        setup.checked()
    }

    /// Fails if there is nothing to fit or to compare.
    fn checked(self) -> Result<Self, String> {
        if self.curve.unit == Unit::TimesOne {
            return Err("the rate of one task is not published, so nothing can be fitted".into());
        }
        match (self.measured().len(), self.pair()) {
            (0, _) => Err("all its counts are beyond the CPUs".into()),
            (1, Ok(None)) => Err("one count of tasks".into()),
            (1, Err(why)) => Err(format!("one count of tasks, and of the change: {why}")),
            _ => Ok(self),
        }
    }

    /// The published points that the machine has CPUs for. More tasks would measure a scheduler.
    pub fn measured(&self) -> &'a [Point] {
        let cpus = self.curve.machine.cpus;
        let within = self.curve.points.partition_point(|point| point.0 <= cpus);
        &self.curve.points[..within]
    }

    /// The system that represents the changed side, the number of tasks, and the measured ratio
    /// of after to before.
    pub fn pair(&self) -> Result<Option<(StandIn, Point)>, String> {
        let change = self.curve.change_within(self.curve.machine.cpus);
        match (&self.after, change) {
            (Some(Ok(after)), Some(change)) => Ok(Some((*after, change))),
            (Some(Err(why)), _) => Err(why.clone()),
            _ => Ok(None),
        }
    }

    /// The counts that are simulated: the fewest, the most, and some between, evenly apart as
    /// factors.
    fn counts(&self, effort: &Effort) -> Vec<u32> {
        let all: Vec<u32> = self.measured().iter().map(|point| point.0).collect();
        let (first, last) = (all[0], all[all.len() - 1]);
        let mut counts = vec![first];
        let (from, to) = (f64::from(first).ln(), f64::from(last).ln());
        for step in 1..=effort.counts {
            let wanted = from + (to - from) * step as f64 / effort.counts as f64;
            let far = |count: &&u32| (f64::from(**count).ln() - wanted).abs();
            let nearest = all.iter().min_by(|a, b| far(a).total_cmp(&far(b)));
            counts.extend(nearest);
        }
        counts.dedup();
        counts
    }

    /// Adds the rates at all published counts on which the place of the predicted knee depends.
    fn complete_the_knee(
        &self,
        points: &mut Vec<Point>,
        rate: impl Fn(u32) -> Result<f64, Failure>,
    ) -> Result<(), Failure> {
        while let Some(tasks) = self.beside_the_knee(points) {
            let place = points.partition_point(|point| point.0 < tasks);
            points.insert(place, Point(tasks, rate(tasks)?));
        }
        Ok(())
    }

    /// A published count that has not been simulated, and on which the place of the predicted knee
    /// depends: the next one to the peak, or the one before the knee.
    fn beside_the_knee(&self, points: &[Point]) -> Option<u32> {
        let knee = score::knee(points).filter(|_| points.len() > 2)?;
        let all = self.measured().iter().map(|point| point.0);
        let peak = points
            .iter()
            .max_by(|one, other| one.1.total_cmp(&other.1))?
            .0;
        let before = |count| all.clone().filter(|&other| other < count).max();
        let after = all.clone().find(|&other| other > peak);
        let known = |count: &u32| rate_at(points, *count).is_some();
        let beside = [before(peak), after, before(knee)].into_iter().flatten();
        beside.filter(|count| !known(count)).min()
    }

    /// The number of simulated points that it takes, without those at the knee.
    pub fn steps(&self, effort: &Effort) -> u64 {
        let pair = matches!(self.pair(), Ok(Some(_)));
        self.counts(effort).len() as u64 + u64::from(pair)
    }

    /// Fits and simulates. Of what was measured it sees the fewest tasks' rate only.
    ///
    /// # Errors
    /// A run fails, or no time makes that rate ([`Failure::NotFitted`]).
    pub fn predict(&self, effort: &Effort, progress: &dyn Progress) -> Result<Prediction, Failure> {
        let counts = self.counts(effort);
        progress.point(&self.curve.id);
        let mut runner = Runner::new(self, effort.seeds.clone())?;
        let Point(fewest, measured) = self.measured()[0];
        let fit = runner.fit(fewest as usize, measured)?;
        let mut points = Vec::new();
        for &tasks in &counts {
            interrupt::check()?;
            points.push(Point(tasks, runner.rate(tasks as usize)?));
            progress.step();
        }
        self.complete_the_knee(&mut points, |tasks| {
            interrupt::check()?;
            runner.rate(tasks as usize)
        })?;
        let change = match self.pair() {
            Ok(Some((after, Point(tasks, _)))) => {
                let changed = runner.changed(after)?.rate(tasks as usize)?;
                let before = match rate_at(&points, tasks) {
                    Some(before) => before,
                    None => runner.rate(tasks as usize)?,
                };
                progress.step();
                Some(Point(tasks, changed / before))
            }
            _ => None,
        };
        let most = *counts.last().expect("a curve has points") as usize;
        let (mechanism, bottleneck) = runner.seen(most)?;
        let Curve { workload, mode, .. } = self.curve;
        Ok(Prediction {
            fit,
            points,
            change,
            mechanism,
            bottleneck,
            expected: Expected::of(
                (workload, *mode),
                self.before.system(),
                &self.machine,
                most,
                mechanism,
            ),
        })
    }
}

/// The simulation's prediction of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The fitted time.
    pub fit: String,
    /// In the curve's unit, at the simulated counts.
    pub points: Vec<Point>,
    /// After over before.
    pub change: Option<Point>,
    /// The mechanism that holds most tasks up.
    pub mechanism: Mechanism,
    /// The bottleneck in a sentence.
    pub bottleneck: String,
    /// The error to expect of the rate of the most tasks.
    pub expected: Expected,
}

/// Returns true if this source is reserved for validation: nobody compares its curves with their
/// predictions while the simulator is being corrected. That is about half of the sources: those
/// whose names have a hash (FNV-1a of 64 bits) with the highest bit set.
pub fn is_held_back(source: &str) -> bool {
    let mut hasher = FnvHasher::default();
    hasher.write(source.as_bytes());
    hasher.finish() >> 63 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::read;

    const CURVE: &str = r#"
[source]
title = "A message"
author = "A person"
date = "2020-09-15"
address = "https://example.org/message"
how = "table"
[machines.box]
cpu = "not named"
cpus = 16
sockets = 1
cores = 8
threads = 2
[[curve]]
name = "mmap1-threads"
machine = "box"
workload = "mmap1"
mode = "threads"
kernel = "FreeBSD 11"
unit = "operations/s"
points = [[1, 1], [2, 1], [3, 1], [4, 1], [6, 1], [8, 1], [12, 1], [16, 1], [32, 1]]
"#;

    fn counts(text: &str, counts: usize) -> Vec<u32> {
        let curves = read("source", text).expect("a file");
        let mapping = Mapping::built_in().expect("a file");
        let setup = Setup::of(&curves[0], &mapping).expect("a stand-in");
        let seeds = 1..2;
        setup.counts(&Effort { counts, seeds })
    }

    #[test]
    fn counts_are_spread_within_the_cpus() {
        assert_eq!(counts(CURVE, 4), [1, 2, 4, 8, 16]);
        assert_eq!(counts(CURVE, 1), [1, 16]);
        assert_eq!(counts(CURVE, 100), [1, 2, 3, 4, 6, 8, 12, 16]);
        let few = CURVE.replace("[2, 1], [3, 1], [4, 1], ", "");
        assert_eq!(counts(&few, 4), [1, 6, 8, 16]);
        let late = CURVE.replace("[1, 1], [2, 1], [3, 1], ", "");
        assert_eq!(counts(&late, 2), [4, 8, 16]);
    }

    /// Rates that rise to the peak at 6 tasks, and fall from there on by so much a task.
    #[test]
    fn all_counts_on_which_the_knee_depends_are_simulated() {
        let simulated = |slope: f64| {
            let curves = read("source", CURVE).expect("a file");
            let mapping = Mapping::built_in().expect("a file");
            let setup = Setup::of(&curves[0], &mapping).expect("a stand-in");
            let rate = |tasks: u32| 100.0 - slope * (f64::from(tasks) - 6.0).abs();
            let mut points = [1, 16].map(|tasks| Point(tasks, rate(tasks))).to_vec();
            assert_eq!(
                setup.beside_the_knee(&points),
                None,
                "two points have no knee"
            );
            points.insert(1, Point(8, rate(8)));
            let completed = setup.complete_the_knee(&mut points, |tasks| Ok(rate(tasks)));
            completed.expect("no run fails");
            points.iter().map(|point| point.0).collect::<Vec<_>>()
        };
        // The knee is 6, 4 and 2.
        assert_eq!(simulated(9.0), [1, 4, 6, 8, 16]);
        assert_eq!(simulated(4.0), [1, 3, 4, 6, 8, 16]);
        assert_eq!(simulated(2.5), [1, 2, 3, 4, 6, 8, 16]);
    }

    #[test]
    fn what_can_not_be_predicted_says_why() {
        let processes = CURVE.replace("\"threads\"", "\"processes\"");
        let pair = |kernel: &str| {
            format!("{processes}[curve.after]\nkernel = \"{kernel}\"\npoints = [[1, 2]]\n")
        };
        let one = |text: String| {
            text.replace(
                "[2, 1], [3, 1], [4, 1], [6, 1], [8, 1], [12, 1], [16, 1], [32, 1]",
                "",
            )
        };
        let beyond = CURVE.replace(
            "[1, 1], [2, 1], [3, 1], [4, 1], [6, 1], [8, 1], [12, 1], [16, 1], ",
            "[20, 1], ",
        );
        for (text, why) in [
            (
                CURVE.replace("\"mmap1\"", "\"pft9\""),
                "unknown workload pft9",
            ),
            (
                CURVE.replace("FreeBSD 11", "Plan 9"),
                "nothing represents it: Plan 9",
            ),
            (
                CURVE.replace("not named", "SPARC"),
                "no machine has the costs of SPARC",
            ),
            (beyond, "beyond the CPUs"),
            (
                CURVE.replace("operations/s", "times one task"),
                "the rate of one task is not published",
            ),
            (
                one(pair("FreeBSD 12-CURRENT, May 2018")),
                "both sides are freebsd-di",
            ),
            (
                one(pair("FreeBSD 12-CURRENT, 2018")),
                "one count of tasks, and of the change: freebsd-di",
            ),
        ] {
            let curves = read("source", &text).expect("a file");
            let mapping = Mapping::built_in().expect("a file");
            let said = Setup::of(&curves[0], &mapping).expect_err(why);
            assert!(said.contains(why), "{said}");
        }
        let text = one(pair("delayed invalidation by epochs"));
        let curves = read("source", &text).expect("a file");
        let mapping = Mapping::built_in().expect("a file");
        let setup = Setup::of(&curves[0], &mapping).expect("a pair");
        let pair = setup.pair().expect("both sides").expect("a pair");
        assert_eq!(pair.0.to_string(), "freebsd-epoch");
        assert_eq!(pair.1, Point(1, 2.0));
    }

    #[test]
    fn a_machine_has_the_clocks_of_its_processor() {
        let named = CURVE.replace("not named", "Intel Xeon 6130, 2.1 GHz");
        let speed = |text: &str| {
            let curves = read("source", text).expect("a file");
            let mapping = Mapping::built_in().expect("a file");
            let machine = mapping.machine(&curves[0].machine).expect("a machine");
            [1, 4, 16].map(|busy| machine.core.clocks.speed(busy))
        };
        assert_eq!(speed(CURVE), [1.0; 3]);
        assert_eq!(speed(&named), [3.7 / 2.8, 3.5 / 2.8, 1.0]);
    }

    fn predict(text: &str) -> Result<Prediction, Failure> {
        let curves = read("source", text).expect("a file");
        let mapping = Mapping::built_in().expect("a file");
        let setup = Setup::of(&curves[0], &mapping).expect("a stand-in");
        let effort = Effort {
            counts: 1,
            seeds: 1..2,
        };
        setup.predict(&effort, &())
    }

    #[test]
    fn the_fewest_tasks_are_fitted() {
        let few = CURVE
            .replace("cpus = 16", "cpus = 2")
            .replace("cores = 8", "cores = 1");
        // At 40 a second the first window holds not even one operation.
        for rate in [100_000.0, 40.0] {
            let slow = predict(&few.replace("[1, 1]", &format!("[1, {rate}]"))).expect("runs");
            assert!((slow.points[0].1 / rate - 1.0).abs() < 0.02, "{slow:?}");
        }
        let fast = predict(&few.replace("[1, 1]", "[1, 1e9]")).expect_err("too fast");
        assert!(matches!(fast, Failure::NotFitted(_)), "{fast:?}");
        let why = "not fitted: one task does not reach 1000000000";
        assert!(fast.to_string().starts_with(why), "{fast}");
    }

    #[test]
    fn one_count_of_a_pair_is_fitted() {
        let pair = CURVE.replace("\"threads\"", "\"processes\"").replace(
            "[1, 1], [2, 1], [3, 1], [4, 1], [6, 1], [8, 1], [12, 1], [16, 1], [32, 1]",
            "[2, 200000]",
        ) + "[curve.after]\nkernel = \"delayed invalidation by epochs\"\npoints = [[2, 1]]\n";
        let found = predict(&pair).expect("runs");
        assert!((found.points[0].1 / 2e5 - 1.0).abs() < 0.02, "{found:?}");
        assert_eq!(found.change.map(|point| point.0), Some(2));
    }

    #[test]
    fn about_half_of_the_sources_are_held_back() {
        let names = ["wang-x86", "wang-arm", "macy-ebr", "macy-scaling"];
        assert_eq!(names.map(is_held_back), [true, false, true, false]);
    }
}

//! The points of curves, measured.

use super::{Curve, Sweep};
use crate::output::curves::{Point, Series};
use crate::output::json::Records;
use crate::output::progress::Progress;
use crate::output::sink::Sink;
use bench::simulated::AT_ONCE_WHOLE;
use bench::{Failure, Outcome, Phase, Sample, System, Watch, Workers, measure};
use stats::environment::Environment;
use stats::record::Subject;

impl Sweep {
    /// Measures all points, and writes their records if requested. Returns the finished points, and
    /// the failure that ended the sweep early.
    pub fn measure(
        &self,
        records: Option<(&mut Sink<'_>, &mut Environment)>,
    ) -> (Vec<Series>, Option<Failure>) {
        let mut series: Vec<Series> = self.curves.iter().map(Curve::series).collect();
        let turns = match self.turns() {
            Ok(turns) => turns,
            Err(failure) => return (series, Some(failure)),
        };
        let progress = self.progress(&turns);
        let mut records = records.map(|(sink, machine)| {
            let records = Records::new(&turns[0].subject, sink, Some(&progress));
            (records, machine)
        });
        let run = |turn: &Turn, tell: &dyn Fn(Said)| self.take(turn, &progress, tell);
        let ended = self.workers().follow(&turns, run, |turn, said| {
            let records = records.as_mut();
            let records = records.map(|(records, machine)| (records.of(&turn.subject), machine));
            match said {
                Said::Sample(phase, index, sample) => {
                    if let Some((records, _)) = records {
                        records.sample(phase, index, &sample);
                    }
                }
                Said::End(outcome) => {
                    let outcome = outcome?;
                    if let Some((records, machine)) = records {
                        records.finish(machine, &outcome);
                    }
                    // A point that was cut short is not a point.
                    if !outcome.interrupted {
                        series[turn.which].points.push(Point {
                            tasks: turn.tasks,
                            linear: linear(&turn.system, turn.tasks),
                            outcome,
                        });
                    }
                }
            }
            Ok(())
        });
        progress.finish();
        (series, ended.err())
    }

    /// The points, those of one number of tasks in turn, so that a drift of the machine meets all
    /// curves alike.
    fn turns(&self) -> Result<Vec<Turn>, Failure> {
        let curves = || self.curves.iter().enumerate();
        let counts = self.counts.iter();
        let turns = counts.flat_map(|&tasks| curves().map(move |curve| (tasks, curve)));
        let turns = turns.map(|(tasks, (which, curve))| {
            let system = self.system(curve, tasks)?;
            Ok(Turn {
                which,
                tasks,
                work: work(&system, tasks),
                subject: system.subject(&curve.plan(tasks)),
                system,
            })
        });
        turns.collect()
    }

    fn progress(&self, turns: &[Turn]) -> Progress {
        let samples = self.curves[0].schedule.total().unwrap_or(0);
        let work: u64 = turns.iter().map(|turn| turn.work).sum();
        Progress::weighted(samples * turns.len() as u64, "samples", samples * work)
    }

    /// Returns one worker if the system is real: concurrent points would slow each other.
    fn workers(&self) -> Workers<'static> {
        let mut systems = self.curves.iter().map(|curve| &curve.system);
        if systems.all(|system| system.simulated().is_some()) {
            Workers::here(AT_ONCE_WHOLE)
        } else {
            Workers::ALONE
        }
    }

    /// Measures one point, and tells of it.
    fn take(&self, turn: &Turn, progress: &Progress, tell: &dyn Fn(Said)) {
        let curve = &self.curves[turn.which];
        let tasks = curve.mode.count(turn.tasks);
        progress.point(&format!("{}, {tasks}", self.name(curve)));
        let mut watch = Telling {
            tell,
            progress,
            work: turn.work,
        };
        let plan = curve.plan(turn.tasks);
        let outcome = measure(turn.system.target(), &plan, &curve.schedule, &mut watch);
        tell(Said::End(outcome));
    }
}

impl Curve {
    /// The curve, without points.
    fn series(&self) -> Series {
        Series {
            workload: self.workload.name(),
            mode: self.mode,
            label: self.label,
            points: Vec::new(),
            simulated: self.system.simulated().is_some(),
        }
    }
}

/// The cost of a sample with `tasks` tasks relative to one with a single task: the time of a
/// simulation grows with the CPUs at work; on a real machine it does not.
fn work(system: &System, tasks: usize) -> u64 {
    system.simulated().map_or(1, |_| tasks as u64)
}

/// The rate that `tasks` independent tasks would have, as a multiple of one task's.
fn linear(system: &System, tasks: usize) -> f64 {
    let simulated = system.simulated();
    simulated.map_or(tasks as f64, |simulated| simulated.linear(tasks))
}

/// A point that is to be measured.
struct Turn {
    /// The place of its curve among all.
    which: usize,
    tasks: usize,
    system: System,
    /// What a sample costs.
    work: u64,
    subject: Subject,
}

/// What is told of a point.
enum Said {
    Sample(Phase, u32, Sample),
    End(Result<Outcome, Failure>),
}

/// Tells of each sample.
struct Telling<'a> {
    tell: &'a dyn Fn(Said),
    progress: &'a Progress,
    /// What a sample costs.
    work: u64,
}

impl Watch for Telling<'_> {
    fn phase(&mut self, _: Phase) {}

    fn sample(&mut self, phase: Phase, index: u32, sample: &Sample) {
        self.progress.worked(self.work);
        (self.tell)(Said::Sample(phase, index, *sample));
    }
}

//! The points of curves, measured.

use super::{Side, Sweep};
use crate::output::curves::{Point, Series};
use crate::output::json::Records;
use crate::output::progress::Progress;
use crate::output::sink::Sink;
use bench::simulated::AT_ONCE_WHOLE;
use bench::{Failure, Outcome, Phase, Sample, Watch, Workers, measure};
use stats::environment::Environment;
use stats::record::Subject;

impl Sweep {
    /// Measures all points, and writes their records if requested. Returns the finished points, and
    /// the failure that ended the sweep early.
    pub fn measure(
        &self,
        records: Option<(&mut Sink<'_>, &mut Environment)>,
    ) -> (Vec<Series>, Option<Failure>) {
        let mut series: Vec<Series> = self.sides.iter().map(Side::series).collect();
        let turns = self.turns();
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
                        records.finish(machine, outcome.interrupted);
                    }
                    // A point that was cut short is not a point.
                    if !outcome.interrupted {
                        let tasks = turn.tasks;
                        series[turn.which].points.push(Point { tasks, outcome });
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
    fn turns(&self) -> Vec<Turn> {
        let sides = || self.sides.iter().enumerate();
        let counts = self.counts.iter();
        let turns = counts.flat_map(|&tasks| sides().map(move |side| (tasks, side)));
        let turns = turns.map(|(tasks, (which, side))| Turn {
            which,
            tasks,
            work: side.work(tasks),
            subject: side.system.subject(&self.plan(tasks)),
        });
        turns.collect()
    }

    fn progress(&self, turns: &[Turn]) -> Progress {
        let samples = self.schedule.total().unwrap_or(0);
        let work: u64 = turns.iter().map(|turn| turn.work).sum();
        Progress::weighted(samples * turns.len() as u64, "samples", samples * work)
    }

    /// Returns one worker if the system is real: concurrent points would slow each other.
    fn workers(&self) -> Workers<'static> {
        let mut systems = self.sides.iter().map(|side| &side.system);
        if systems.all(|system| system.simulated().is_some()) {
            Workers::here(AT_ONCE_WHOLE)
        } else {
            Workers::ALONE
        }
    }

    /// Measures one point, and tells of it.
    fn take(&self, turn: &Turn, progress: &Progress, tell: &dyn Fn(Said)) {
        let side = &self.sides[turn.which];
        progress.point(&format!("{}, {}", side.label, self.mode.count(turn.tasks)));
        let mut watch = Telling {
            tell,
            progress,
            work: turn.work,
        };
        let plan = self.plan(turn.tasks);
        let outcome = measure(side.system.target(), &plan, &self.schedule, &mut watch);
        tell(Said::End(outcome));
    }
}

/// A point that is to be measured.
struct Turn {
    /// The place of its curve among all.
    which: usize,
    tasks: usize,
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

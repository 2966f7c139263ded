//! `scalevm sweep`: a curve over the number of tasks.

mod why;

use crate::cli::{On, SweepArgs};
use crate::harness::{Failure, Job, Mode, Outcome, Plan, Schedule, Target, measure};
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::sink::Sink;
use crate::output::{attribution, plot, shape, table};
use crate::simulated::{BANDS, Simulated};
use crate::tasks::places;
use stats::environment::Environment;

/// One curve.
pub struct Series {
    /// The system, or the preset of our VM.
    pub label: String,
    /// The points that were finished.
    pub points: Vec<Point>,
    /// Whether each sample is a simulated machine of its own, whose median counts.
    pub simulated: bool,
}

/// One point of a curve.
pub struct Point {
    /// How many tasks.
    pub tasks: usize,
    /// What was measured.
    pub outcome: Outcome,
}

impl Series {
    /// Tasks and operations a second, for those who draw or judge.
    pub fn curve(&self) -> Vec<(usize, f64)> {
        let figure = |outcome: &Outcome| match self.simulated {
            true => outcome.spread().map(|[_, median, _]| median),
            false => outcome.average(),
        };
        self.points
            .iter()
            .filter_map(|point| Some((point.tasks, figure(&point.outcome)?)))
            .collect()
    }
}

/// Measures all points and shows them.
pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let common = &args.common;
    if common.samples == Some(0) {
        let why = "a sweep needs an end: --samples 0 goes with `run` only";
        return Err(Failure::Unavailable(why.into()));
    }
    let on = super::system(common, !args.vm.is_empty())?;
    let presets: Vec<Option<&str>> = match args.vm.as_slice() {
        [] => vec![None],
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut sides = Vec::new();
    for vm in presets {
        sides.push(Side {
            on,
            vm,
            target: super::target(on, vm, common)?,
            simulated: super::simulated_on(on, vm, common)?,
        });
    }
    let counts = task_counts(&args.cpus, sides[0].simulated.as_ref())?;
    super::prepare()?;
    let workload = super::workload(&args.what, on)?;
    super::warn_if_crowded(on, counts.last().copied().unwrap_or(1));
    let mut sweep = Sweep {
        workload: workload.job,
        mode: common.mode(),
        schedule: common.schedule(on),
        counts,
        sides,
    };
    let mut out = std::io::stdout();
    let mut sink = Sink::open(common.json.then_some(&mut out), &common.keep)?;
    let mut machine = sink.is_some().then(json::machine);
    let records = sink.as_mut().zip(machine.as_mut());
    let (series, failure) = sweep.measure(records);
    if common.json {
        series.iter().for_each(|one| print_shape(&sweep, one));
    } else {
        show(workload.job, args, &series);
        if on == On::Sim {
            println!("{BANDS}");
        }
    }
    sink.map_or(Ok(()), Sink::finish)?;
    if failure.is_none() && super::finished() == 0 {
        sweep.explain(&series, common.json)?;
        if args.why {
            why::explain(&sweep, &series, common)?;
        }
    }
    // What was finished has been shown; now the reason why there is not more.
    failure.map_or_else(|| Ok(super::finished()), Err)
}

/// What one curve is of.
pub struct Side<'a> {
    /// The system.
    pub on: On,
    /// The preset, if it is ours.
    pub vm: Option<&'a str>,
    /// The system, ready to run.
    pub target: Box<dyn Target>,
    /// The same, if it is a simulated one.
    pub simulated: Option<Simulated>,
}

impl Side<'_> {
    fn label(&self) -> String {
        self.vm.unwrap_or(self.on.entry().name).to_owned()
    }
}

/// Curves to be measured together.
pub struct Sweep<'a> {
    /// What runs.
    pub workload: Job,
    /// What the tasks are.
    pub mode: Mode,
    /// How long each point takes.
    pub schedule: Schedule,
    /// The numbers of tasks.
    pub counts: Vec<usize>,
    /// A curve each.
    pub sides: Vec<Side<'a>>,
}

impl Sweep<'_> {
    /// Measures all points, those of one number of tasks in turn, so that a drift of the
    /// machine meets all curves alike. Writes records if wanted. Returns what was
    /// finished, and why that is not all.
    pub fn measure(
        &mut self,
        mut records: Option<(&mut Sink<'_>, &mut Environment)>,
    ) -> (Vec<Series>, Option<Failure>) {
        let mut series: Vec<Series> = self
            .sides
            .iter()
            .map(|side| Series {
                label: side.label(),
                points: Vec::new(),
                simulated: side.simulated.is_some(),
            })
            .collect();
        let points = self.counts.len() * self.sides.len();
        let samples = self.schedule.total().unwrap_or(0) * points as u64;
        let mut progress = Progress::new(samples, "samples");
        let turns = self
            .counts
            .iter()
            .flat_map(|&tasks| (0..self.sides.len()).map(move |which| (tasks, which)));
        let mut failure = None;
        for (tasks, which) in turns {
            let plan = Plan {
                workload: self.workload,
                tasks,
                mode: self.mode,
                count: None,
            };
            progress.point(&format!("{}, {tasks} tasks", series[which].label));
            let side = &self.sides[which];
            let measured = match &mut records {
                None => measure(&*side.target, &plan, &self.schedule, &mut progress),
                Some((sink, machine)) => {
                    let subject = json::subject(
                        &plan,
                        side.on,
                        side.vm,
                        side.simulated.as_ref().map(Simulated::machine),
                    );
                    let mut records = json::Records::new(&subject, sink, Some(&mut progress));
                    let measured = measure(&*side.target, &plan, &self.schedule, &mut records);
                    if matches!(&measured, Ok(outcome) if !outcome.interrupted) {
                        records.finish(machine);
                    }
                    measured
                }
            };
            match measured {
                // A point that was cut short is not a point.
                Ok(outcome) if outcome.interrupted => break,
                Ok(outcome) => series[which].points.push(Point { tasks, outcome }),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        progress.finish();
        (series, failure)
    }
}

impl Sweep<'_> {
    /// Names what holds each simulated curve up at its most tasks.
    pub fn explain(&self, series: &[Series], json: bool) -> Result<(), Failure> {
        for (side, one) in self.sides.iter().zip(series) {
            let (Some(simulated), Some(last)) = (&side.simulated, one.points.last()) else {
                continue;
            };
            let plan = Plan {
                workload: self.workload,
                tasks: last.tasks,
                mode: self.mode,
                count: None,
            };
            let attribution = simulated.attribute(&plan, self.schedule.duration)?;
            let range = simulated.corners(&plan, self.schedule.duration)?;
            if json {
                attribution::print_json(&plan, simulated, &attribution, range);
            } else {
                let tasks = self.mode.count(last.tasks);
                let (label, range) = (&one.label, attribution::corners(range));
                println!("{label}, {tasks}: bottleneck: {}", attribution.bottleneck());
                println!("{label}, {tasks}: {range}");
            }
        }
        Ok(())
    }
}

fn show(workload: Job, args: &SweepArgs, series: &[Series]) {
    if series.iter().all(|one| one.points.is_empty()) {
        return;
    }
    println!(
        "{} ({}), {}, {} a second",
        workload.name(),
        workload.description(),
        args.common.mode().name(),
        workload.unit()
    );
    print_curves(series);
}

/// Prints what a curve does as one line of JSON.
fn print_shape(sweep: &Sweep<'_>, one: &Series) {
    if let Some(mut shape) = shape::json(&one.curve()) {
        shape["kind"] = "curve".into();
        shape["workload"] = sweep.workload.name().into();
        shape["system"] = one.label.as_str().into();
        shape["mode"] = sweep.mode.name().into();
        println!("{shape}");
    }
}

/// Table, plot, and what the curves do.
pub fn print_curves(series: &[Series]) {
    println!("{}", table::curves(series));
    print!("{}", plot::curves(series));
    for one in series {
        for line in shape::describe(&one.curve()) {
            println!("{}: {line}", one.label);
        }
    }
}

/// The numbers of tasks, ascending and each once.
fn task_counts(asked: &[u32], simulated: Option<&Simulated>) -> Result<Vec<usize>, Failure> {
    let mut counts: Vec<usize> = asked.iter().map(|&count| count as usize).collect();
    if counts.is_empty() {
        let cpus = match simulated {
            Some(simulated) => simulated.profile.cpus(),
            None => {
                let mask = places::Mask::current().map_err(Failure::start("CPU affinity"))?;
                mask.cpus().len()
            }
        };
        counts.extend(std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|&n| n < cpus));
        counts.push(cpus);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

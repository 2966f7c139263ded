//! `scalevm sweep`: a curve over the number of tasks.

use crate::cli::SweepArgs;
use crate::harness::{Failure, Outcome, Plan, Target, measure};
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::{plot, shape, table};
use crate::tasks::places;

/// One curve.
pub struct Series {
    /// The system, or the preset of our VM.
    pub label: String,
    /// The points that were finished.
    pub points: Vec<Point>,
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
        self.points
            .iter()
            .filter_map(|point| Some((point.tasks, point.outcome.average()?)))
            .collect()
    }
}

/// Measures all points and shows them.
pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let common = &args.common;
    if common.samples == 0 {
        let why = "a sweep needs an end: --samples 0 goes with `run` only";
        return Err(Failure::Unavailable(why.into()));
    }
    let on = super::system(common, !args.vm.is_empty())?;
    let presets: Vec<Option<&str>> = match args.vm.as_slice() {
        [] => vec![None],
        named => named.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut series = Vec::new();
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for vm in &presets {
        targets.push(super::target(on, *vm, common)?);
        series.push(Series {
            label: vm.unwrap_or(on.entry().name).to_owned(),
            points: Vec::new(),
        });
    }
    let counts = task_counts(&args.cpus)?;
    super::prepare()?;
    super::warn_if_crowded(counts.last().copied().unwrap_or(1));

    let schedule = common.schedule();
    let mut machine = common.json.then(json::machine);
    let total = schedule.total().unwrap_or(0) * (counts.len() * presets.len()) as u64;
    let mut progress = Progress::new(total, "samples");
    // The curves take turns, so that a drift of the machine meets all of them alike.
    let turns = counts
        .iter()
        .flat_map(|&tasks| (0..presets.len()).map(move |which| (tasks, which)));
    let mut failure = None;
    for (tasks, which) in turns {
        let plan = Plan {
            workload: args.workload,
            tasks,
            mode: common.mode(),
        };
        progress.point(&format!("{}, {tasks} tasks", series[which].label));
        let target = &*targets[which];
        let measured = if let Some(machine) = &mut machine {
            let subject = json::subject(&plan, on, presets[which]);
            let mut records = json::Records::new(&subject, Some(&mut progress));
            let measured = measure(target, &plan, &schedule, &mut records);
            if matches!(&measured, Ok(outcome) if !outcome.interrupted) {
                records.finish(machine);
            }
            measured
        } else {
            measure(target, &plan, &schedule, &mut progress)
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
    if !common.json {
        show(args, &series);
    }
    // What was finished has been shown; now the reason why there is not more.
    failure.map_or_else(|| Ok(super::finished()), Err)
}

fn show(args: &SweepArgs, series: &[Series]) {
    if series.iter().all(|one| one.points.is_empty()) {
        return;
    }
    let workload = args.workload;
    println!(
        "{} ({}), {}, {} a second",
        workload.name,
        workload.description,
        args.common.mode().name(),
        workload.unit
    );
    println!("{}", table::curves(series));
    print!("{}", plot::curves(series));
    for one in series {
        for line in shape::describe(&one.curve()) {
            println!("{}: {line}", one.label);
        }
    }
}

/// The numbers of tasks, ascending and each once.
fn task_counts(asked: &[u32]) -> Result<Vec<usize>, Failure> {
    let mut counts: Vec<usize> = asked.iter().map(|&count| count as usize).collect();
    if counts.is_empty() {
        let mask = places::Mask::current().map_err(Failure::start("CPU affinity"))?;
        let cpus = mask.cpus().len();
        counts.extend(std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|&n| n < cpus));
        counts.push(cpus);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

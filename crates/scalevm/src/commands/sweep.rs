//! `scalevm sweep`: a curve over the number of tasks.

mod points;
mod why;

use crate::cli::SweepArgs;
use crate::output::curves::{self, Series};
use crate::output::json;
use crate::output::progress;
use crate::output::sink::Sink;
use crate::output::{attribution, format, shape};
use baselines::Preset;
use bench::simulated::{BANDS, Simulated};
use bench::tasks::places;
use bench::{Failure, Job, Mode, On, Plan, Schedule, System};

/// Measures all points and shows them.
pub fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let common = &args.common;
    format::choose(common.format.format);
    if common.samples == Some(0) {
        let why = "a sweep must end: --samples 0 applies to `run` only";
        return Err(Failure::Unavailable(why.into()));
    }
    let on = super::on(common, !args.vm.is_empty())?;
    let presets: Vec<Option<Preset>> = match args.vm.as_slice() {
        [] => vec![None],
        named => named.iter().copied().map(Some).collect(),
    };
    let mut sides = Vec::new();
    for vm in presets {
        sides.push(Side {
            label: vm.map_or(on.name(), |preset| preset.name),
            system: super::system(on, vm, common)?,
        });
    }
    let counts = task_counts(&args.cpus, sides[0].system.simulated())?;
    super::prepare()?;
    let workload = super::workload(&args.what, on)?;
    let mut sweep = Sweep {
        workload: workload.job,
        mode: common.mode(),
        schedule: common.schedule(on),
        counts,
        sides,
    };
    let alone = sweep.plan(1);
    for side in &mut sweep.sides {
        super::fit(&mut side.system, &alone, common)?;
    }
    for side in &sweep.sides {
        let most = sweep.counts.last().copied().unwrap_or(1);
        super::tell_if_crowded(&side.system, &sweep.plan(most));
    }
    let mut out = std::io::stdout();
    let mut sink = Sink::open(
        common.json.then_some(&mut out),
        common.keep.store.as_deref(),
        common.keep.label.as_deref(),
    )?;
    let mut machine = sink.is_some().then(json::machine);
    if on != On::Sim {
        super::warn_if_noisy(sweep.schedule.span(), machine.as_ref());
    }
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
    // The finished points have been shown; now the reason why there are no more.
    failure.map_or_else(|| Ok(super::finished()), Err)
}

/// The subject of one curve.
pub struct Side {
    /// The name of the system, or of the requested preset.
    pub label: &'static str,
    pub system: System,
}

impl Side {
    /// The cost of a sample with `tasks` tasks relative to one with a single task: the time of a
    /// simulation grows with the CPUs at work; on a real machine it does not.
    fn work(&self, tasks: usize) -> u64 {
        self.system.simulated().map_or(1, |_| tasks as u64)
    }

    /// Its curve, without points.
    fn series(&self) -> Series {
        Series {
            label: self.label.to_owned(),
            points: Vec::new(),
            simulated: self.system.simulated().is_some(),
        }
    }
}

/// Curves to be measured together.
pub struct Sweep {
    pub workload: Job,
    /// The tasks' kind.
    pub mode: Mode,
    /// The schedule of each point.
    pub schedule: Schedule,
    /// The numbers of tasks.
    pub counts: Vec<usize>,
    /// A curve each.
    pub sides: Vec<Side>,
}

impl Sweep {
    /// The plan of a run with `tasks` tasks.
    fn plan(&self, tasks: usize) -> Plan {
        Plan {
            workload: self.workload,
            tasks,
            mode: self.mode,
            count: None,
        }
    }

    /// Names the bottleneck of each simulated curve at its most tasks.
    pub fn explain(&self, series: &[Series], json: bool) -> Result<(), Failure> {
        for (side, one) in self.sides.iter().zip(series) {
            let (Some(simulated), Some(last)) = (side.system.simulated(), one.points.last()) else {
                continue;
            };
            let plan = self.plan(last.tasks);
            let (attribution, range) =
                simulated.reasons(&plan, self.schedule.duration, progress::bar)?;
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
    curves::print(series);
}

/// Prints a curve's shape as one line of JSON.
fn print_shape(sweep: &Sweep, one: &Series) {
    if let Some(mut shape) = shape::json(&one.curve()) {
        shape["kind"] = "curve".into();
        shape["workload"] = sweep.workload.name().into();
        shape["system"] = one.label.as_str().into();
        shape["mode"] = sweep.mode.name().into();
        println!("{shape}");
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

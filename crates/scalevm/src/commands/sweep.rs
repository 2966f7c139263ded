//! `scalevm sweep`: curves over the number of tasks.

mod points;
mod why;

use crate::cli::{CommonArgs, SweepArgs};
use crate::output::curves::{self, Series};
use crate::output::json;
use crate::output::progress;
use crate::output::sink::Sink;
use crate::output::{attribution, format, shape};
use baselines::Preset;
use bench::own::Opened;
use bench::simulated::Simulated;
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
    super::simulated_only(args.grow.then_some("--grow"), on == On::Sim)?;
    let counts = task_counts(&args.cpus, super::system(on, None, common)?.simulated())?;
    super::prepare()?;
    let workloads = workloads(args, on)?;
    let sweep = Sweep {
        curves: asked(args, on, &workloads)?,
        counts,
        grows: args.grow,
    };
    sweep.tell_if_crowded()?;
    let mut out = std::io::stdout();
    let mut sink = Sink::open(
        common.json.then_some(&mut out),
        common.keep.store.as_deref(),
        common.keep.label.as_deref(),
    )?;
    let mut machine = sink.is_some().then(json::machine);
    if on != On::Sim {
        super::warn_if_noisy(common.schedule(on).span(), machine.as_ref());
    }
    let records = sink.as_mut().zip(machine.as_mut());
    let (series, failure) = sweep.measure(records);
    if common.json {
        series.iter().for_each(print_shape);
    } else {
        sweep.show(&series);
    }
    sink.map_or(Ok(()), Sink::finish)?;
    if failure.is_none() && super::finished() == 0 {
        if !sweep.is_wide() {
            sweep.explain(&series, common.json)?;
        }
        if args.why {
            why::explain(&sweep, &series, common)?;
        }
    }
    // The finished points have been shown; now the reason why there are no more.
    failure.map_or_else(|| Ok(super::finished()), Err)
}

/// The user's workloads.
fn workloads(args: &SweepArgs, on: On) -> Result<Vec<Opened>, Failure> {
    let first = super::workload(&args.what, &args.recorded, on);
    let chosen = |choice| super::chosen(choice, &args.recorded, on);
    let more = args.more.iter().map(chosen);
    std::iter::once(first).chain(more).collect()
}

/// The requested curves: each workload by each kind of tasks on each build.
fn asked(args: &SweepArgs, on: On, workloads: &[Opened]) -> Result<Vec<Curve>, Failure> {
    let modes = match args.both {
        true => Mode::BOTH.to_vec(),
        false => vec![args.common.mode()],
    };
    let presets: Vec<Option<Preset>> = match args.vm.as_slice() {
        [] => vec![None],
        named => named.iter().copied().map(Some).collect(),
    };
    let mut curves = Vec::new();
    for workload in workloads {
        for &mode in &modes {
            for &vm in &presets {
                curves.push(Curve::new(workload.job, mode, on, vm, &args.common)?);
            }
        }
    }
    Ok(curves)
}

/// The subject of one curve.
pub struct Curve {
    pub workload: Job,
    /// The tasks' kind.
    pub mode: Mode,
    /// The name of the system, or of the requested preset.
    pub label: &'static str,
    pub system: System,
    /// The schedule of each point.
    pub schedule: Schedule,
}

impl Curve {
    fn new(
        workload: Job,
        mode: Mode,
        on: On,
        vm: Option<Preset>,
        common: &CommonArgs,
    ) -> Result<Self, Failure> {
        let mut curve = Curve {
            workload,
            mode,
            label: vm.map_or(on.name(), |preset| preset.name),
            system: super::system(on, vm, common)?,
            schedule: common.schedule(on),
        };
        let alone = curve.plan(1);
        super::fit(&mut curve.system, &alone, common)?;
        curve.schedule = super::schedule(&curve.system, &alone, common)?;
        Ok(curve)
    }

    /// The plan of a run with `tasks` tasks.
    fn plan(&self, tasks: usize) -> Plan {
        Plan::of(self.workload, tasks, self.mode, None)
    }
}

/// Curves to be measured together.
pub struct Sweep {
    pub curves: Vec<Curve>,
    /// The numbers of tasks.
    pub counts: Vec<usize>,
    /// True if a simulated machine has as many sockets as each number of tasks needs.
    pub grows: bool,
}

impl Sweep {
    /// Returns true if the curves differ by more than the system: then they have no plot in common.
    fn is_wide(&self) -> bool {
        let first = &self.curves[0];
        let differs = |curve: &Curve| {
            curve.workload.name() != first.workload.name() || curve.mode != first.mode
        };
        self.curves.iter().any(differs)
    }

    /// The name of a curve among all, for a line that says its kind of tasks.
    fn name(&self, curve: &Curve) -> String {
        match self.is_wide() {
            true => format!("{}, {}", curve.workload.name(), curve.label),
            false => curve.label.to_owned(),
        }
    }

    /// The system on which `tasks` tasks run.
    fn system(&self, curve: &Curve, tasks: usize) -> Result<System, Failure> {
        Ok(match &curve.system {
            System::Sim(simulated) if self.grows => System::Sim(simulated.grown(tasks)?.into()),
            system => system.clone(),
        })
    }

    /// Prints a note for each system on which the most tasks have to share CPUs.
    fn tell_if_crowded(&self) -> Result<(), Failure> {
        let most = self.counts.last().copied().unwrap_or(1);
        let mut told = Vec::new();
        for curve in &self.curves {
            if !told.contains(&curve.label) {
                told.push(curve.label);
                super::tell_if_crowded(&self.system(curve, most)?, &curve.plan(most));
            }
        }
        Ok(())
    }

    fn show(&self, series: &[Series]) {
        if series.iter().all(|one| one.points.is_empty()) {
            return;
        }
        if self.is_wide() {
            return curves::print_rates(&self.counts, series);
        }
        let Curve { workload, mode, .. } = &self.curves[0];
        println!(
            "{} ({}), {}, {} a second",
            workload.name(),
            workload.description(),
            mode.name(),
            workload.unit()
        );
        curves::print(series);
    }

    /// Names the bottleneck of each simulated curve at its most tasks.
    pub fn explain(&self, series: &[Series], json: bool) -> Result<(), Failure> {
        for (curve, one) in self.curves.iter().zip(series) {
            let Some(last) = one.points.last() else {
                continue;
            };
            let System::Sim(simulated) = self.system(curve, last.tasks)? else {
                continue;
            };
            let plan = curve.plan(last.tasks);
            let (attribution, range) =
                simulated.reasons(&plan, curve.schedule.duration, progress::bar)?;
            if json {
                attribution::print_json(&plan, &simulated, &attribution, range);
            } else {
                let tasks = curve.mode.count(last.tasks);
                let (label, range) = (&one.label, attribution::corners(range));
                println!("{label}, {tasks}: bottleneck: {}", attribution.bottleneck());
                let expected = simulated.expected(&plan, &attribution);
                println!("{label}, {tasks}: {range}; {expected}");
            }
        }
        Ok(())
    }
}

/// Prints a curve's shape as one line of JSON.
fn print_shape(one: &Series) {
    if let Some(mut shape) = shape::json(&one.curve()) {
        shape["kind"] = "curve".into();
        shape["workload"] = one.workload.into();
        shape["system"] = one.label.into();
        shape["mode"] = one.mode.name().into();
        println!("{shape}");
    }
}

/// The numbers of tasks, ascending and each once.
fn task_counts(asked: &[u32], simulated: Option<&Simulated>) -> Result<Vec<usize>, Failure> {
    let mut counts: Vec<usize> = asked.iter().map(|&count| count as usize).collect();
    if counts.is_empty() {
        let cpus = match simulated {
            Some(simulated) => simulated.profile.cpus(),
            None => places::cpus()?,
        };
        counts = super::up_to(cpus);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

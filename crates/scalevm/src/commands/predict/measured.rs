//! Curves that the user has measured.

use crate::cli::{PredictArgs, RECORDING};
use bench::{Failure, Job, Recorded};
use report::Source;
use sim::profile::MachineProfile;
use stats::InputError;
use stats::record::Run;
use std::fs;
use std::path::Path;
use studies::predict::{Mapping, Setting, Setup, StandIn};
use studies::published::{self, Curve, Machine, Point, Unit};

/// Curves, and what their tasks do.
pub struct Measured {
    pub curves: Vec<Curve>,
    /// The workloads that the user has named.
    jobs: Vec<Job>,
    /// The machine on which they were measured, unless they name their own.
    machine: Option<MachineProfile>,
    mapping: Mapping,
}

impl Measured {
    /// Those in `path`: results of runs (a file or a store), a file in the format of published
    /// curves (`.toml`), or a table of tasks and rates.
    ///
    /// # Errors
    /// What cannot be read, with its place.
    pub fn read(path: &Path, args: &PredictArgs) -> Result<Self, Failure> {
        let jobs = args.which.iter().map(|name| job(name));
        let jobs: Vec<Job> = jobs.collect::<Result<_, _>>()?;
        let bad = |error: published::Error| Failure::Unavailable(error.to_string());
        let shown = path.display().to_string();
        let is_published = path.extension().is_some_and(|end| end == "toml");
        let machine = match is_published && !args.machine.is_chosen() {
            true => None,
            false => Some(args.machine.profile()?),
        };
        let mut curves = if is_published {
            published::read(&shown, &text(path)?).map_err(bad)?
        } else {
            args.vm
                .ok_or_else(|| missing("--vm, the preset that represents its kernel"))?;
            if path.is_dir() || text(path)?.trim_start().starts_with('{') {
                from_results(path)?
            } else {
                let [job] = jobs[..] else {
                    return Err(missing("the one workload of the table, e.g. mmap1"));
                };
                let mode = args.mode();
                let table = published::table(&shown, &text(path)?, job.name(), mode);
                vec![table.map_err(bad)?]
            }
        };
        if let Some(job) = jobs
            .iter()
            .find(|job| !curves.iter().any(|one| does(one, job)))
        {
            let name = job.name();
            return Err(Failure::Unavailable(format!("{shown}: no curve of {name}")));
        }
        curves.retain(|curve| jobs.is_empty() || jobs.iter().any(|job| does(curve, job)));
        if let Some(machine) = &machine {
            let cpus = machine.cpus() as u32;
            curves
                .iter_mut()
                .for_each(|curve| curve.machine.cpus = cpus);
        }
        Ok(Measured {
            curves,
            jobs,
            machine,
            mapping: Mapping::built_in().map_err(bad)?,
        })
    }

    /// How a curve is predicted, or why it is not.
    pub fn setup<'c>(&self, curve: &'c Curve, args: &PredictArgs) -> Result<Setup<'c>, String> {
        let named = self.jobs.iter().find(|job| does(curve, job)).copied();
        let known = || workloads::find(&curve.workload).map(Job::Known);
        let job = named.or_else(known);
        let mapping = &self.mapping;
        let stand_in = |preset, kernel: &str| match preset {
            Some(preset) => Ok(StandIn::Vm(preset, Setting::default())),
            None => mapping.stand_in(kernel, &curve.workload, curve.mode),
        };
        let before = stand_in(args.vm, &curve.kernel)?;
        if job.is_none() && matches!(before, StandIn::Vm(..)) {
            return Err(format!(
                "unknown workload {}; if it is a recorded program, name its file",
                curve.workload
            ));
        }
        let after = curve.after.as_ref();
        let after = after.map(|after| stand_in(args.after, &after.kernel));
        let machine = match &self.machine {
            Some(machine) => machine.clone(),
            None => mapping.machine(&curve.machine)?,
        };
        Setup::with(curve, job, before, after, machine)
    }
}

/// Returns true if the tasks of `curve` do `job`.
fn does(curve: &Curve, job: &Job) -> bool {
    curve.workload == job.name()
}

/// A workload by its name, or a recorded program by its file.
fn job(name: &str) -> Result<Job, Failure> {
    let path = Path::new(name);
    if path.extension().is_some_and(|end| end == RECORDING) {
        return Ok(Recorded::open(path, None, None)?.into());
    }
    let found = workloads::find(name).map(Job::Known);
    found.ok_or_else(|| Failure::Unavailable(format!("unknown workload {name}")))
}

fn missing(what: &str) -> Failure {
    Failure::Unavailable(format!("--measured: expected {what}"))
}

fn text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|source| {
        Failure::Input(InputError::Unreadable {
            file: path.display().to_string(),
            source,
        })
    })
}

/// The curves in a file or store of results: complete runs of one workload, mode and system, with
/// more tasks each. Of two runs with equally many tasks the later one counts.
fn from_results(path: &Path) -> Result<Vec<Curve>, Failure> {
    let source = Source::read(&path.display().to_string())?;
    let mut curves: Vec<Curve> = Vec::new();
    for run in source.runs.iter().filter(|run| run.complete) {
        let new = curve(run, &source.name);
        let same = |old: &&mut Curve| old.id == new.id && old.kernel == new.kernel;
        match curves.iter_mut().find(same) {
            Some(old) => {
                old.points.retain(|point| point.0 != run.subject.tasks);
                old.points.extend(new.points);
            }
            None => curves.push(new),
        }
    }
    let points = curves.iter_mut().map(|curve| &mut curve.points);
    points.for_each(|points| points.sort_by_key(|point| point.0));
    Ok(curves)
}

/// The one point of a run.
fn curve(run: &Run, file: &str) -> Curve {
    let subject = &run.subject;
    let kernel = subject.vm.as_ref().or(run.label.as_ref());
    Curve {
        id: format!("{}-{}", subject.workload, subject.mode.name()),
        source: published::Source::own(file),
        machine: Machine::default(),
        workload: subject.workload.clone(),
        mode: subject.mode,
        kernel: kernel.unwrap_or(&subject.on).clone(),
        unit: Unit::Operations,
        note: None,
        points: vec![Point(subject.tasks, run.average)],
        after: None,
    }
}

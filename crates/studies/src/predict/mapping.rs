//! The systems and machines that stand in for those of published curves: the file `predicted.toml`.

use crate::published::{self, Error, parse};
use baselines::Preset;
use bench::simulated::Placement;
use lockbench::Row;
use lockbench::registry::ROWS;
use lockbench::simulated::Load;
use serde::Deserialize;
use sim::profile::{Clocks, MachineProfile};
use stats::record::Mode;
use std::collections::BTreeMap;
use std::fmt;

/// The file, compiled in.
const FILE: (&str, &str) = ("predicted.toml", include_str!("../../predicted.toml"));

/// A system or a lock that runs in place of a kernel.
#[derive(Clone, Copy)]
pub enum StandIn {
    /// Scalevm's VM, built like this, runs the workload.
    Vm(Preset, Setting),
    /// Tasks contend for one lock, with operations like this.
    Lock(&'static Row, Load),
}

impl StandIn {
    /// The name of the preset or the lock.
    pub fn system(&self) -> &'static str {
        match self {
            StandIn::Vm(preset, _) => preset.name,
            StandIn::Lock(row, ..) => row.name,
        }
    }
}

impl PartialEq for StandIn {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (StandIn::Vm(one, setting), StandIn::Vm(other, others)) => {
                (one, setting) == (other, others)
            }
            (StandIn::Lock(one, load), StandIn::Lock(other, others)) => {
                (one.name, load) == (other.name, others)
            }
            _ => false,
        }
    }
}

/// The settings of a run other than its preset and machine.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Setting {
    /// The placement of its tasks.
    pub place: Placement,
    /// The time that the machine takes to flush the TLBs of other CPUs without an interrupt, in
    /// nanoseconds, if it does.
    pub broadcast: Option<f64>,
}

/// The name of the preset or the lock, with what is unusual.
impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut name, place, broadcast) = match self {
            StandIn::Vm(preset, Setting { place, broadcast }) => {
                (preset.to_string(), place, *broadcast)
            }
            StandIn::Lock(row, load) => (row.name.to_owned(), &load.place, None),
        };
        if *place == Placement::Spread {
            name += ", spread";
        }
        if broadcast.is_some() {
            name += ", broadcast";
        }
        f.pad(&name)
    }
}

impl fmt::Debug for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The stand-ins.
#[derive(Debug)]
pub struct Mapping {
    lines: Vec<Line>,
    machines: BTreeMap<String, String>,
    shapes: BTreeMap<String, String>,
    clocks: BTreeMap<String, Clocks>,
}

impl Mapping {
    /// The stand-ins that are compiled in.
    pub fn built_in() -> Result<Self, Error> {
        Mapping::read(FILE.0, FILE.1)
    }

    /// The stand-ins of a file.
    pub fn read(path: &str, text: &str) -> Result<Self, Error> {
        let file: File = parse(path, text)?;
        let error = |why| Error {
            path: path.to_owned(),
            why,
        };
        let lines = file.stand_ins.into_iter().map(|told| {
            let kernel = told.kernels.first().cloned().unwrap_or_default();
            line(told).map_err(|why| error(format!("stand-in of \"{kernel}\": {why}")))
        });
        let mapping = Mapping {
            lines: lines.collect::<Result<_, _>>()?,
            machines: file.machines,
            shapes: file.shapes,
            clocks: file
                .clocks
                .into_iter()
                .map(|(cpu, rows)| (cpu, Clocks(rows)))
                .collect(),
        };
        for (cpu, machine) in &mapping.machines {
            MachineProfile::named(machine)
                .map_err(|why| error(format!("machine \"{cpu}\": {why}")))?;
        }
        for (cpu, clocks) in &mapping.clocks {
            let check = clocks.check();
            check.map_err(|why| error(format!("clocks of \"{cpu}\": {why}")))?;
        }
        for (cpus, shape) in &mapping.shapes {
            let all = shape_of(shape).map(|parts| parts.iter().product::<usize>());
            if all.is_none() || cpus.parse().ok() != all {
                return Err(error(format!("shape {shape} is not one of {cpus} CPUs")));
            }
        }
        Ok(mapping)
    }

    /// The stand-in for `kernel` and a workload, or the reason why there is none.
    pub fn stand_in(&self, kernel: &str, workload: &str, mode: Mode) -> Result<StandIn, String> {
        let run = run_name(workload, mode);
        let line = self.lines.iter().find(|line| line.fits(kernel, &run));
        let found = line.map_or_else(
            || Err(format!("nothing represents it: {kernel}")),
            |line| line.what.clone(),
        );
        match found {
            Ok(StandIn::Lock(..)) => found,
            _ if workloads::find(workload).is_none() => Err(format!("unknown workload {workload}")),
            found => found,
        }
    }

    /// The simulated machine in place of a published one, or the reason why there is none.
    pub fn machine(&self, machine: &published::Machine) -> Result<MachineProfile, String> {
        let cpu = &machine.cpu;
        let name = longest(&self.machines, cpu);
        let name = name.ok_or_else(|| format!("no machine has the costs of {cpu}"))?;
        let said = |count: Option<u32>| Some(count? as usize);
        let own = (|| {
            Some([
                said(machine.sockets)?,
                said(machine.cores)?,
                said(machine.threads)?,
            ])
        })();
        let shape = || shape_of(self.shapes.get(&machine.cpus.to_string())?);
        let [sockets, cores, threads] = own
            .or_else(shape)
            .ok_or_else(|| format!("the shape of its {} CPUs is not known", machine.cpus))?;
        let mut profile = MachineProfile::named(name).map_err(|error| error.to_string())?;
        if profile.topology.shape() != format!("{sockets}x{cores}x{threads}") {
            let shaped = profile.with_topology(sockets, cores, threads);
            profile = shaped.map_err(|error| error.to_string())?;
        }
        profile.core.clocks = longest(&self.clocks, cpu).cloned().unwrap_or_default();
        Ok(profile)
    }

    /// The lines that fit no side of any of `curves`, by their first kernel.
    pub fn unused(&self, curves: &[published::Curve]) -> Vec<&str> {
        let mut left: Vec<bool> = vec![true; self.lines.len()];
        for curve in curves {
            let run = run_name(&curve.workload, curve.mode);
            let after = curve.after.iter().map(|after| &after.kernel);
            for kernel in after.chain([&curve.kernel]) {
                let line = self.lines.iter().position(|line| line.fits(kernel, &run));
                line.inspect(|&line| left[line] = false);
            }
        }
        let lines = self.lines.iter().zip(left).filter(|(_, left)| *left);
        lines.map(|(line, _)| &*line.kernels[0]).collect()
    }
}

/// A line of the file, checked.
#[derive(Debug)]
struct Line {
    kernels: Vec<String>,
    runs: Option<Vec<String>>,
    what: Result<StandIn, String>,
}

impl Line {
    fn fits(&self, kernel: &str, run: &String) -> bool {
        let kernels = &mut self.kernels.iter();
        kernels.any(|begin| kernel.starts_with(begin))
            && self.runs.as_ref().is_none_or(|runs| runs.contains(run))
    }
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    stand_ins: Vec<Told>,
    machines: BTreeMap<String, String>,
    shapes: BTreeMap<String, String>,
    #[serde(default)]
    clocks: BTreeMap<String, Vec<(usize, f64)>>,
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    kernels: Vec<String>,
    runs: Option<Vec<String>>,
    preset: Option<String>,
    /// `pack`, the default, or `spread`.
    place: Option<String>,
    /// Nanoseconds of a flush of other CPUs' TLBs without an interrupt, if the machine has one.
    broadcast: Option<f64>,
    lock: Option<String>,
    /// [`Load::lines`] and [`Load::section`] of a lock, if not those of `scalevm locks`.
    lines: Option<usize>,
    section: Option<f64>,
    /// Sections of an operation, 1 by default.
    times: Option<u32>,
    because: Option<String>,
}

fn line(told: Told) -> Result<Line, String> {
    if told.kernels.is_empty() || told.kernels.iter().any(String::is_empty) {
        return Err("no kernels".into());
    }
    let is_run = |run: &&String| {
        let parts = run.split_once(' ');
        parts.is_some_and(|(_, mode)| ["processes", "threads"].contains(&mode))
    };
    let runs = told.runs.iter().flatten();
    if let Some(run) = runs.clone().find(|run| !is_run(run)) {
        return Err(format!("{run} is not a run such as \"mmap1 threads\""));
    }
    if told.broadcast.is_some() && told.preset.is_none() {
        return Err("a broadcast without a preset".into());
    }
    if told.place.is_some() && told.because.is_some() {
        return Err("a place without a preset or a lock".into());
    }
    let place = place(told.place.as_deref())?;
    let times = told.times.unwrap_or(1);
    let sized = told.lines.is_some() || told.section.is_some() || told.times.is_some();
    if (sized && told.lock.is_none()) || times == 0 {
        return Err("lines, a section or times without a lock".into());
    }
    let load = Load {
        lines: told.lines.unwrap_or(Load::default().lines),
        section: told.section.unwrap_or(Load::default().section),
        times,
        place,
        disturbed: true,
        ..Load::default()
    };
    let what = match (told.preset, told.lock, told.because) {
        (Some(preset), None, None) => Ok(StandIn::Vm(
            preset
                .parse()
                .map_err(|_| format!("unknown preset {preset}"))?,
            Setting {
                place,
                broadcast: told.broadcast,
            },
        )),
        (None, Some(lock), None) => Ok(StandIn::Lock(
            locks()
                .find(|row| row.name == lock)
                .ok_or(format!("unknown simulated lock {lock}"))?,
            load,
        )),
        (None, None, Some(why)) if !why.trim().is_empty() => Err(why),
        _ => return Err("expected one of preset, lock and because".into()),
    };
    Ok(Line {
        kernels: told.kernels,
        runs: told.runs,
        what,
    })
}

fn place(name: Option<&str>) -> Result<Placement, String> {
    let Some(name) = name else {
        return Ok(Placement::default());
    };
    Placement::named(name).ok_or_else(|| format!("unknown place {name}; expected pack or spread"))
}

fn locks() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(|row| row.simulated.is_some())
}

/// `mmap1 threads`.
fn run_name(workload: &str, mode: Mode) -> String {
    format!("{workload} {}", mode.name())
}

/// The value of the longest key that `text` begins with.
fn longest<'t, T>(values: &'t BTreeMap<String, T>, text: &str) -> Option<&'t T> {
    let begins = |(key, _): &(&String, &T)| text.starts_with(key.as_str());
    let (_, value) = values
        .iter()
        .filter(begins)
        .max_by_key(|(key, _)| key.len())?;
    Some(value)
}

/// `2x24x2`.
fn shape_of(text: &str) -> Option<[usize; 3]> {
    let parts: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    parts.ok()?.try_into().ok()
}

//! What can be run in turn: a workload on a system, or a command.

use crate::catalog::{PRESETS, SYSTEMS};
use crate::cli::{CompareArgs, On};
use crate::commands::target;
use crate::harness::{Failure, Phase, Plan, Sample, Schedule, Target, Watch, interrupt, measure};
use crate::output::json;
use clap::ValueEnum;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use workloads::Workload;

/// One side of a comparison.
pub trait Side {
    /// Makes one run and gives its rate; none if the user cut it short.
    fn run(&mut self) -> Result<Option<f64>, Failure>;
}

/// What is compared, and in which unit.
pub struct Sides {
    /// One line on what all sides do.
    pub about: String,
    /// Unit of the rates.
    pub unit: &'static str,
    /// Their names.
    pub names: Vec<String>,
    /// Those who run, in the same order.
    pub runners: Vec<Box<dyn Side>>,
}

impl Sides {
    /// The sides that `names` stand for: commands if `args` say so, else systems.
    pub fn new(args: &CompareArgs, names: &[String]) -> Result<Self, Failure> {
        let duration = args.measuring.duration;
        let seconds = duration.as_secs_f64();
        let mut sides = Sides {
            about: format!("commands, again and again for {seconds} s a run"),
            unit: "completions/s",
            names: names.to_vec(),
            runners: Vec::new(),
        };
        if args.command {
            sides.runners.extend(names.iter().map(|command| {
                Box::new(Shell {
                    command: command.clone(),
                    warmup: args.measuring.warmup,
                    duration,
                }) as Box<dyn Side>
            }));
            return Ok(sides);
        }
        let default = || workloads::find("mmap1");
        let Some(workload) = args.workload.or_else(default) else {
            return Err(Failure::Unavailable("--workload is missing".into()));
        };
        for name in names {
            sides.runners.push(system(args, workload, name)?);
        }
        let mode = args.measuring.common().mode();
        sides.about = format!(
            "{} ({}), {}, {seconds} s a run",
            workload.name,
            workload.description,
            mode.count(args.measuring.tasks as usize)
        );
        sides.unit = json::UNIT;
        Ok(sides)
    }
}

/// Whether `name` is a system or a preset.
pub fn is_system(name: &str) -> bool {
    SYSTEMS
        .iter()
        .chain(PRESETS)
        .any(|entry| entry.name == name)
}

/// A workload on the system or preset called `name`.
fn system(
    args: &CompareArgs,
    workload: &'static Workload,
    name: &str,
) -> Result<Box<dyn Side>, Failure> {
    let systems = On::value_variants();
    let (on, vm) = match systems.iter().find(|on| on.entry().name == name) {
        Some(&on) => (on, None),
        None if is_system(name) => (On::Hosted, Some(name)),
        None => {
            let known = SYSTEMS.iter().chain(PRESETS).map(|entry| entry.name);
            return Err(Failure::Unavailable(format!(
                "no system or preset is called `{name}`; there are {}",
                known.collect::<Vec<_>>().join(", ")
            )));
        }
    };
    if let Some(asked) = args.measuring.on.filter(|asked| *asked != on) {
        let (asked, is) = (asked.entry().name, on.entry().name);
        return Err(Failure::Unavailable(format!(
            "--on {asked} does not go with `{name}`, which is {is}"
        )));
    }
    let common = args.measuring.common();
    Ok(Box::new(OnSystem {
        target: target(on, vm, &common)?,
        plan: Plan {
            workload,
            tasks: args.measuring.tasks as usize,
            mode: common.mode(),
        },
        schedule: common.schedule(),
    }))
}

/// A workload; each run starts its tasks anew.
struct OnSystem {
    target: Box<dyn Target>,
    plan: Plan,
    schedule: Schedule,
}

/// Runs are told of as a whole.
struct Silent;

impl Watch for Silent {
    fn phase(&mut self, _: Phase) {}
    fn sample(&mut self, _: Phase, _: u32, _: &Sample) {}
}

impl Side for OnSystem {
    fn run(&mut self) -> Result<Option<f64>, Failure> {
        let outcome = measure(&*self.target, &self.plan, &self.schedule, &mut Silent)?;
        Ok(outcome.average().filter(|_| !outcome.interrupted))
    }
}

/// A shell command. A run starts it again and again, one after the other, until
/// `duration` has passed, and lets the last one end: completions over the time they
/// really took.
struct Shell {
    command: String,
    warmup: u32,
    duration: Duration,
}

impl Shell {
    /// Runs the command once; false if the user cut it short. Its output is dropped, its
    /// complaints are not.
    fn complete(&self) -> Result<bool, Failure> {
        let status = Command::new("/bin/sh")
            .args(["-c", &self.command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(Failure::start("/bin/sh"))?;
        // The signal has probably reached the command as well, so ask about it first.
        if interrupt::pending().is_some() {
            return Ok(false);
        }
        match status.success() {
            true => Ok(true),
            false => Err(Failure::Command {
                command: self.command.clone(),
                status,
            }),
        }
    }
}

impl Side for Shell {
    fn run(&mut self) -> Result<Option<f64>, Failure> {
        for _ in 0..std::mem::take(&mut self.warmup) {
            if !self.complete()? {
                return Ok(None);
            }
        }
        let start = Instant::now();
        let mut completions = 0.0;
        loop {
            if !self.complete()? {
                return Ok(None);
            }
            completions += 1.0;
            let elapsed = start.elapsed();
            if elapsed >= self.duration {
                return Ok(Some(completions / elapsed.as_secs_f64()));
            }
        }
    }
}

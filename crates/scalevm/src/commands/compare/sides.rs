//! What can be run in turn: a workload on a system, or a command.

use crate::catalog::{PRESETS, SYSTEMS};
use crate::cli::{CompareArgs, On};
use crate::commands;
use crate::harness::{Failure, Phase, Plan, Sample, Schedule, Target, Watch, interrupt, measure};
use crate::output::json;
use crate::simulated::Simulated;
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
    /// Whether all of them are simulated.
    pub simulated: bool,
}

impl Sides {
    /// The sides that `names` stand for: commands if `args` say so, else systems.
    pub fn new(args: &CompareArgs, names: &[String]) -> Result<Self, Failure> {
        let common = args.measuring.common();
        let simulated = commands::system(&common, true)? == On::Sim;
        let on = if simulated { On::Sim } else { On::Hosted };
        let duration = common.schedule(on).duration;
        let seconds = duration.as_secs_f64();
        let mut sides = Sides {
            about: format!("commands, again and again for {seconds} s a run"),
            unit: "completions/s",
            names: names.to_vec(),
            runners: Vec::new(),
            simulated,
        };
        if args.command {
            sides.runners.extend(names.iter().map(|command| {
                Box::new(Shell {
                    command: command.clone(),
                    warmup: args.measuring.warmup.unwrap_or(1),
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
        let mode = common.mode();
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
    let common = args.measuring.common();
    let systems = On::value_variants();
    let (on, vm) = match systems.iter().find(|on| on.entry().name == name) {
        Some(&on) => (on, None),
        None if is_system(name) => (commands::system(&common, true)?, Some(name)),
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
    let plan = Plan {
        workload: workload.into(),
        tasks: args.measuring.tasks as usize,
        mode: common.mode(),
    };
    let schedule = common.schedule(on);
    if on == On::Sim {
        return Ok(Box::new(OnSimulated {
            target: commands::simulated(vm, &common)?,
            plan,
            span: schedule.duration,
        }));
    }
    Ok(Box::new(OnSystem {
        target: commands::target(on, vm, &common)?,
        plan,
        schedule,
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

/// A workload on a simulated machine; each run has the next seed, the same for all sides.
struct OnSimulated {
    target: Simulated,
    plan: Plan,
    span: Duration,
}

impl Side for OnSimulated {
    fn run(&mut self) -> Result<Option<f64>, Failure> {
        let done = self.target.sample(&self.plan, self.span)?;
        self.target.seed += 1;
        let operations = done.iter().sum::<u64>() as f64;
        let rate = operations / self.span.as_secs_f64();
        Ok(interrupt::pending().is_none().then_some(rate))
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

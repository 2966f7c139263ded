//! What can be run in turn: a workload on a system, or a command.

use crate::catalog::{PRESETS, SYSTEMS};
use crate::cli::{CompareArgs, On};
use crate::commands;
use crate::harness::{Failure, Job, Plan, Schedule, Target, Together, interrupt, measure};
use crate::output::json;
use crate::output::sink::Sink;
use crate::own::Opened;
use crate::simulated::Simulated;
use clap::ValueEnum;
use stats::environment::Environment;
use stats::record::{Measurement, Subject};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One side of a comparison.
pub trait Side {
    /// Makes one run, keeps it where asked, and gives its rate; none if the user cut it short.
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure>;
}

/// Where runs are kept, and the machine they are made on.
pub struct Kept {
    /// The store.
    pub sink: Sink<'static>,
    /// As it was before the first run.
    pub machine: Environment,
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
    /// What they run, if that is no command.
    _workload: Option<Opened>,
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
            unit: json::COMPLETIONS,
            names: names.to_vec(),
            runners: Vec::new(),
            simulated,
            _workload: None,
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
        let workload = workload(args, names)?;
        let job = workload.job;
        for name in names {
            sides.runners.push(system(args, job, name)?);
        }
        let mode = common.mode();
        sides.about = format!(
            "{} ({}), {}, {seconds} s a run",
            job.name(),
            job.description(),
            mode.count(args.measuring.tasks as usize)
        );
        sides.unit = json::UNIT;
        sides._workload = Some(workload);
        Ok(sides)
    }
}

/// What all sides run.
fn workload(args: &CompareArgs, names: &[String]) -> Result<Opened, Failure> {
    let Some(choice) = &args.workload else {
        let default = workloads::find("mmap1").expect("mmap1 is a workload");
        return Ok(Job::Known(default).into());
    };
    let os = On::Os.entry().name;
    let other = names.iter().any(|name| name != os);
    commands::chosen(choice, if other { On::Hosted } else { On::Os })
}

/// Whether `name` is a system or a preset.
pub fn is_system(name: &str) -> bool {
    SYSTEMS
        .iter()
        .chain(PRESETS)
        .any(|entry| entry.name == name)
}

/// A workload on the system or preset called `name`.
fn system(args: &CompareArgs, workload: Job, name: &str) -> Result<Box<dyn Side>, Failure> {
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
        workload,
        tasks: args.measuring.tasks as usize,
        mode: common.mode(),
        count: None,
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
        subject: json::subject(&plan, on, vm, None),
        plan,
        schedule,
    }))
}

/// A workload; each run starts its tasks anew.
struct OnSystem {
    target: Box<dyn Target>,
    subject: Subject,
    plan: Plan,
    schedule: Schedule,
}

impl Side for OnSystem {
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        let (sink, machine) = kept.map(|kept| (&mut kept.sink, &kept.machine)).unzip();
        let mut records = sink.map(|sink| json::Records::new(&self.subject, sink, None));
        // Runs are told of as a whole, so nobody else watches.
        let mut watch = Together::default().with(&mut records);
        let outcome = measure(&*self.target, &self.plan, &self.schedule, &mut watch)?;
        if outcome.interrupted {
            return Ok(None);
        }
        if let Some((records, machine)) = records.zip(machine) {
            records.finish_at_once(machine);
        }
        Ok(outcome.average())
    }
}

/// A workload on a simulated machine; each run has the next seed, the same for all sides.
struct OnSimulated {
    target: Simulated,
    plan: Plan,
    span: Duration,
}

impl Side for OnSimulated {
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        let done = self.target.sample(&self.plan, self.span)?;
        let seconds = self.span.as_secs_f64();
        if let Some(kept) = kept {
            let machine = Some(self.target.machine());
            let vm = Some(self.target.preset.name());
            let subject = json::subject(&self.plan, On::Sim, vm, machine);
            let sample = Measurement::of_counts(&subject, 1, &done, seconds);
            json::Records::new(&subject, &mut kept.sink, None).whole(sample, &kept.machine);
        }
        self.target.seed += 1;
        let rate = done.iter().sum::<u64>() as f64 / seconds;
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
    fn run(&mut self, _: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
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

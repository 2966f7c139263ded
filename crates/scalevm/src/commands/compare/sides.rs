//! Operands that can run in turn: a workload on a system, or a command.

use crate::cli::{CommonArgs, CompareArgs, RecordedArgs};
use crate::commands;
use crate::output::json;
use crate::output::sink::Sink;
use baselines::Preset;
use bench::own::Opened;
use bench::simulated::Simulated;
use bench::{
    COMPLETIONS, Failure, Job, OPERATIONS, On, Plan, Schedule, System, Together, interrupt, measure,
};
use stats::environment::Environment;
use stats::record::{Measurement, Subject};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One side of a comparison.
pub trait Side {
    /// Makes one run, keeps it where asked, and gives its rate; none if the user cut it short.
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure>;
}

/// The store of runs, and the machine on which they are made.
pub struct Kept {
    /// The store.
    pub sink: Sink<'static>,
    /// The machine's state before the first run.
    pub machine: Environment,
}

/// The operands, and the unit of their rates.
pub struct Sides {
    /// One line on the work of all sides.
    pub about: String,
    /// Unit of the rates.
    pub unit: &'static str,
    /// Their names.
    pub names: Vec<String>,
    /// The operands, in the same order.
    pub runners: Vec<Box<dyn Side>>,
    /// The length of a run.
    duration: Duration,
    /// True if all of them are simulated.
    pub simulated: bool,
    /// Their workload; none if they are commands.
    _workload: Option<Opened>,
}

impl Sides {
    /// Prints a warning if the runs are made on this computer and it is not quiet.
    pub fn warn_if_noisy(&self, runs: u32, machine: Option<&Environment>) {
        if !self.simulated {
            commands::warn_if_noisy(self.duration.saturating_mul(runs), machine);
        }
    }

    /// The sides that `names` stand for: commands if `args` say so, else systems.
    pub fn new(args: &CompareArgs, names: &[String]) -> Result<Self, Failure> {
        let common = args.measuring.common();
        let places = names.iter().map(|name| place(args, &common, name));
        let places: Vec<Placement> = if args.command {
            Vec::new()
        } else {
            places.collect::<Result<_, _>>()?
        };
        let on_sim = |place: &Placement| place.0 == On::Sim;
        commands::simulated_only(common.simulated(), places.iter().any(on_sim))?;
        commands::hosted_only(&common, places.iter().any(|place| place.0 == On::Hosted))?;
        let simulated = !places.is_empty() && places.iter().all(on_sim);
        let on = if simulated { On::Sim } else { On::Hosted };
        let duration = common.schedule(on).duration;
        let seconds = duration.as_secs_f64();
        let mut sides = Sides {
            about: format!("commands, again and again for {seconds} s a run"),
            unit: COMPLETIONS,
            names: names.to_vec(),
            runners: Vec::new(),
            duration,
            simulated,
            _workload: None,
        };
        if args.command {
            sides
                .runners
                .extend(names.iter().enumerate().map(|(index, command)| {
                    Box::new(Shell {
                        command: command.clone(),
                        around: Around::of(args, index),
                        warmup: args.measuring.warmup.unwrap_or(1),
                        duration,
                    }) as Box<dyn Side>
                }));
            return Ok(sides);
        }
        let workload = workload(args, &places)?;
        let job = workload.job;
        for (index, place) in places.into_iter().enumerate() {
            let side = system(args, job, place)?;
            let around = Around::of(args, index);
            sides.runners.push(Box::new(Prepared { side, around }));
        }
        let mode = common.mode();
        sides.about = format!(
            "{} ({}), {}, {seconds} s a run",
            job.name(),
            job.description(),
            mode.count(args.measuring.tasks as usize)
        );
        sides.unit = OPERATIONS;
        sides._workload = Some(workload);
        Ok(sides)
    }
}

/// The workload of all sides.
fn workload(args: &CompareArgs, places: &[Placement]) -> Result<Opened, Failure> {
    let Some(choice) = &args.workload else {
        let default = workloads::find("mmap1").expect("mmap1 is a workload");
        return Ok(Job::Known(default).into());
    };
    // The one that refuses most.
    let mut all = places.iter().map(|place| place.0);
    let other = all.find(|on| !matches!(on, On::Os | On::Kernel));
    commands::chosen(choice, &RecordedArgs::default(), other.unwrap_or(On::Os))
}

/// Returns true if `name` is a system or a preset.
pub fn is_system(name: &str) -> bool {
    On::named(name).is_some() || name.parse::<Preset>().is_ok()
}

/// A system, and the preset if it is scalevm's VM.
type Placement = (On, Option<Preset>);

/// The system or preset called `name`.
fn place(args: &CompareArgs, common: &CommonArgs, name: &str) -> Result<Placement, Failure> {
    let place = match (On::named(name), name.parse()) {
        (Some(on), _) => (on, None),
        (None, Ok(preset)) => {
            let implied = if common.sim.machine.is_chosen() {
                On::Sim
            } else {
                On::Hosted
            };
            let asked = args.measuring.on.filter(|on| *on != On::Os);
            (asked.unwrap_or(implied), Some(preset))
        }
        (None, Err(_)) => {
            let known = On::ALL.map(On::name).into_iter();
            let known = known.chain(Preset::ALL.map(|preset| preset.name));
            return Err(Failure::Unavailable(format!(
                "unknown system or preset `{name}`; expected one of {}",
                known.collect::<Vec<_>>().join(", ")
            )));
        }
    };
    match args.measuring.on.filter(|asked| *asked != place.0) {
        None => Ok(place),
        Some(asked) => {
            let (asked, is) = (asked.name(), place.0.name());
            Err(Failure::Unavailable(format!(
                "--on {asked} conflicts with `{name}`, which runs on {is}"
            )))
        }
    }
}

fn system(
    args: &CompareArgs,
    workload: Job,
    (on, vm): Placement,
) -> Result<Box<dyn Side>, Failure> {
    let common = args.measuring.common();
    let tasks = args.measuring.tasks as usize;
    let plan = Plan::of(workload, tasks, common.mode(), None);
    let schedule = common.schedule(on);
    let mut system = commands::system(on, vm, &common)?;
    commands::fit(&mut system, &plan, &common)?;
    Ok(match system {
        System::Sim(target) => Box::new(OnSimulated {
            target,
            plan,
            span: schedule.duration,
        }),
        system => Box::new(OnSystem {
            subject: system.subject(&plan),
            system,
            plan,
            schedule,
        }),
    })
}

/// A workload; each run starts its tasks anew.
struct OnSystem {
    system: System,
    subject: Subject,
    plan: Plan,
    schedule: Schedule,
}

impl Side for OnSystem {
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        let (sink, machine) = kept.map(|kept| (&mut kept.sink, &kept.machine)).unzip();
        let mut records = sink.map(|sink| json::Records::new(&self.subject, sink, None));
        // Runs are reported as a whole, so there is no other observer.
        let mut watch = Together::default().with(&mut records);
        let outcome = measure(self.system.target(), &self.plan, &self.schedule, &mut watch)?;
        if outcome.interrupted {
            return Ok(None);
        }
        if let Some((mut records, machine)) = records.zip(machine) {
            records.finish_at_once(machine);
        }
        Ok(outcome.average())
    }
}

/// A workload on a simulated machine; each run has the next seed, the same for all sides.
struct OnSimulated {
    target: Box<Simulated>,
    plan: Plan,
    span: Duration,
}

impl Side for OnSimulated {
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        let window = self.target.sample(&self.plan, self.span)?;
        if let Some(kept) = kept {
            let subject = self.target.subject(&self.plan);
            let sample =
                Measurement::of_counts(&subject, 1, &window.counts, window.span.as_secs_f64());
            json::Records::new(&subject, &mut kept.sink, None).whole(sample, &kept.machine);
        }
        self.target.seed += 1;
        Ok(interrupt::pending().is_none().then_some(window.rate()))
    }
}

/// A shell command. A run starts it again and again, one after the other, until
/// `duration` has passed, and lets the last one end: completions over the time they
/// really took, without the commands around them.
struct Shell {
    command: String,
    around: Around,
    warmup: u32,
    duration: Duration,
}

impl Shell {
    /// Runs the command once, between the preparation and the cleanup; returns the time it took,
    /// and none if the user cut it short.
    fn complete(&self) -> Result<Option<Duration>, Failure> {
        if !self.around.before()? {
            return Ok(None);
        }
        let start = Instant::now();
        let whole = shell(&self.command);
        let taken = start.elapsed();
        // The cleanup runs even after a failure.
        let cleaned = self.around.after();
        Ok((whole? && cleaned?).then_some(taken))
    }
}

impl Side for Shell {
    fn run(&mut self, _: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        for _ in 0..std::mem::take(&mut self.warmup) {
            if self.complete()?.is_none() {
                return Ok(None);
            }
        }
        let (mut completions, mut taken) = (0.0, Duration::ZERO);
        while taken < self.duration {
            match self.complete()? {
                None => return Ok(None),
                Some(time) => taken += time,
            }
            completions += 1.0;
        }
        Ok(Some(completions / taken.as_secs_f64()))
    }
}

/// A system, and the commands before and after each of its runs.
struct Prepared {
    side: Box<dyn Side>,
    around: Around,
}

impl Side for Prepared {
    fn run(&mut self, kept: Option<&mut Kept>) -> Result<Option<f64>, Failure> {
        if !self.around.before()? {
            return Ok(None);
        }
        let rate = self.side.run(kept);
        let whole = self.around.after();
        let (rate, whole) = (rate?, whole?);
        Ok(rate.filter(|_| whole))
    }
}

/// Shell commands before and after each run.
struct Around {
    before: Option<String>,
    after: Option<String>,
}

impl Around {
    /// Those of side number `index`: its own, or the only one.
    fn of(args: &CompareArgs, index: usize) -> Self {
        let of = |all: &[String]| all.get(index).or_else(|| all.last()).cloned();
        Around {
            before: of(&args.prepare),
            after: of(&args.cleanup),
        }
    }

    fn before(&self) -> Result<bool, Failure> {
        self.before.as_deref().map_or(Ok(true), shell)
    }

    fn after(&self) -> Result<bool, Failure> {
        self.after.as_deref().map_or(Ok(true), shell)
    }
}

/// Runs a command by a shell; false if the user cut it short. Its output is dropped, its
/// complaints are not.
fn shell(command: &str) -> Result<bool, Failure> {
    let status = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(Failure::start("/bin/sh"))?;
    // The signal has probably reached the command as well, so ask about it first.
    if interrupt::pending().is_some() {
        return Ok(false);
    }
    if status.success() {
        Ok(true)
    } else {
        Err(Failure::Command {
            command: command.to_owned(),
            status,
        })
    }
}

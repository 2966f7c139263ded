//! One file per command.

pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod history;
pub mod latency;
pub mod list;
pub mod locks;
pub mod man;
pub mod profile;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scaling;
pub mod story;
pub mod sweep;
pub mod times;

use crate::cli::{Choice, CommonArgs, On, WorkloadArgs};
use crate::harness::{Failure, Job, Target, interrupt, needs_os};
use crate::os::Os;
use crate::ours::Ours;
use crate::own::{self, Opened};
use crate::simulated::Simulated;
use crate::tasks::places;
use baselines::selected::{Preset, UnknownPreset};

/// Sets up what measuring commands share.
fn prepare() -> Result<(), Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))
}

/// What to run on: as asked, or our VM if one of its presets is named.
fn system(args: &CommonArgs, preset_named: bool) -> Result<On, Failure> {
    match (args.on, preset_named) {
        (Some(on @ (On::Os | On::Hosted)), _) if args.sim.is_chosen() => {
            Err(Failure::Unavailable(format!(
                "--machine and --topology name a simulated machine; they do not go with --on {}",
                on.entry().name
            )))
        }
        (Some(On::Os), true) => Err(Failure::Unavailable(
            "--vm chooses how scalevm's own VM is built; it does not go with --on os".into(),
        )),
        (None, _) if args.sim.is_chosen() => Ok(On::Sim),
        (None, true) => Ok(On::Hosted),
        (on, _) => Ok(on.unwrap_or(On::Os)),
    }
}

/// What to run on `on`, as the user names it.
fn workload(args: &WorkloadArgs, on: On) -> Result<Opened, Failure> {
    match (&args.workload, &args.command) {
        (Some(choice), _) => chosen(choice, on),
        (None, Some(_)) if on != On::Os => Err(needs_os("--command")),
        (None, Some(command)) => own::repeat(command),
        (None, None) => Err(Failure::Unavailable("which workload?".into())),
    }
}

fn chosen(choice: &Choice, on: On) -> Result<Opened, Failure> {
    match choice {
        Choice::Known(workload) => Ok(Job::Known(workload).into()),
        Choice::File(file) if on != On::Os => Err(needs_os(&file.display().to_string())),
        Choice::File(file) => own::open(file),
    }
}

/// The target for a choice of system and preset.
pub fn target(on: On, vm: Option<&str>, args: &CommonArgs) -> Result<Box<dyn Target>, Failure> {
    match on {
        On::Os => Ok(Box::new(Os {
            affinity: args.affinity(),
        })),
        On::Hosted => Ok(Box::new(Ours {
            preset: preset(vm)?,
            affinity: args.affinity(),
        })),
        On::Sim => Ok(Box::new(simulated(vm, args)?)),
    }
}

/// The simulated machine that is asked for, if one is.
fn simulated_on(on: On, vm: Option<&str>, args: &CommonArgs) -> Result<Option<Simulated>, Failure> {
    match on {
        On::Sim => simulated(vm, args).map(Some),
        On::Os | On::Hosted => Ok(None),
    }
}

/// Our VM on the simulated machine that is asked for.
pub fn simulated(vm: Option<&str>, args: &CommonArgs) -> Result<Simulated, Failure> {
    Ok(Simulated {
        preset: preset(vm)?,
        profile: args.sim.profile()?,
        seed: args.sim.seed,
    })
}

fn preset(name: Option<&str>) -> Result<Preset, Failure> {
    let preset = name.map_or(Ok(Preset::Scalevm), str::parse);
    preset.map_err(|error: UnknownPreset| Failure::Unavailable(error.to_string()))
}

/// Says so, once, if `tasks` have to share this computer's CPUs.
fn warn_if_crowded(on: On, tasks: usize) {
    if on == On::Sim {
        return;
    }
    let Ok(mask) = places::Mask::current() else {
        return;
    };
    let cpus = mask.cpus().len();
    if tasks > cpus {
        eprintln!("scalevm: warning: {tasks} tasks on {cpus} CPUs will share them");
    }
}

/// The exit code after a measurement: 128 + signal if a signal cut it short.
fn finished() -> u8 {
    interrupt::pending().map_or(0, |signal| 128 + signal)
}

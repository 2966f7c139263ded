//! One file per command.

pub mod compare;
pub mod list;
pub mod locks;
pub mod run;
pub mod story;
pub mod sweep;

use crate::cli::{CommonArgs, On};
use crate::harness::{Failure, Target, interrupt};
use crate::os::Os;
use crate::ours::Ours;
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
        (Some(On::Os), true) => Err(Failure::Unavailable(
            "--vm chooses how scalevm's own VM is built; it does not go with --on os".into(),
        )),
        (None, true) => Ok(On::Hosted),
        (on, _) => Ok(on.unwrap_or(On::Os)),
    }
}

/// The target for a choice of system and preset.
fn target(on: On, vm: Option<&str>, args: &CommonArgs) -> Result<Box<dyn Target>, Failure> {
    match on {
        On::Os => Ok(Box::new(Os {
            affinity: args.affinity(),
        })),
        On::Hosted => Ok(Box::new(Ours {
            preset: preset(vm)?,
            affinity: args.affinity(),
        })),
        On::Sim => Ok(Box::new(Simulated {
            preset: preset(vm)?,
            profile: sim::profile::Profile::named("freebsd-96").expect("built in"),
            seed: 1,
        })),
    }
}

fn preset(name: Option<&str>) -> Result<Preset, Failure> {
    let preset = name.map_or(Ok(Preset::Scalevm), str::parse);
    preset.map_err(|error: UnknownPreset| Failure::Unavailable(error.to_string()))
}

/// Says so, once, if `tasks` have to share CPUs.
fn warn_if_crowded(tasks: usize) {
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

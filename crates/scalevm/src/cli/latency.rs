//! The command line of `latency`.

use super::{CommonArgs, MachineArgs, TaskArgs, preset, workload};
use baselines::Preset;
use clap::Args;
use workloads::Workload;

/// The beginning of `latency --help`.
pub const LONG_ABOUT: &str = "\
Play a film beside a workload, and measure how late its frames are

The last of the tasks is a player: 60 times a second it sleeps until a frame is due, decodes it into a new buffer, \
hands it on through a pipe, and wakes the waiting consumer. The others run the workload. A frame that is not \
ready when the next is due is dropped. The film is played without the others first: the time that a frame \
takes then is not their doing, and is subtracted.";

/// `latency`.
#[derive(Args)]
pub struct LatencyArgs {
    /// The workload of the other tasks
    #[arg(value_name = "WORKLOAD", value_parser = workload(), default_value = "build")]
    pub workload: &'static Workload,
    /// How many tasks, the player among them
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = super::tasks())]
    pub tasks: u32,
    /// Which build of scalevm's own VM (see `scalevm list`); implies `--on hosted` without --on
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// How many frames the film has
    #[arg(
        long,
        value_name = "N",
        default_value_t = 120,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub frames: u32,
    /// The tasks' kind.
    #[command(flatten)]
    pub what: TaskArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub machine: MachineArgs,
}

impl LatencyArgs {
    /// The same in the terms of `run`: a film has frames, no samples.
    pub fn common(&self) -> CommonArgs {
        CommonArgs {
            tasks: self.what,
            json: self.json,
            sim: self.machine.clone().into(),
            ..CommonArgs::default()
        }
    }
}

//! The command line of `latency`.

use super::{CommonArgs, MachineArgs, TaskArgs, preset};
use baselines::Preset;
use clap::Args;

/// The beginning of `latency --help`.
pub const LONG_ABOUT: &str = "\
Measure how late the frames of a video player are during a build

The last task is a player: 60 times a second it sleeps until a frame is due, decodes the frame into
a new buffer, passes it on through a pipe, and wakes the waiting consumer. The other tasks run the
workload build. A frame that is not ready when the next one is due is dropped. The film first plays
without the other tasks: they do not cause the time that a frame takes then, which is subtracted.";

/// `latency`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  A film during a build:
    scalevm latency -t 4

Exit codes: 0 done, 2 bad usage or input, 4 a task failed, 130 interrupted.")]
pub struct LatencyArgs {
    /// Number of tasks, including the player
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = super::tasks())]
    pub tasks: u32,
    /// The build of scalevm's own VM (see `scalevm list`); implies `--on hosted` without --on
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Number of frames in the film
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

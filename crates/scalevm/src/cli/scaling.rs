//! The command line of `scaling`.

use super::{FormatArgs, SimArgs, workload};
use baselines::Preset;
use clap::Args;
use workloads::Workload;

/// The beginning of `scaling --help`.
pub const LONG_ABOUT: &str = "\
Measure how workloads scale on simulated machines

The output has, for each workload, by processes and by threads: its rate at each number of tasks,
that rate over the rate of one task, and the bottleneck from the number of tasks at which scaling
falls below 0.9 of linear. If the machine has too few CPUs for a number of tasks, sockets are added.
docs/results/scaling.md has the tables.";

/// `scaling`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Three workloads, on up to 96 CPUs:
    scalevm scaling mmap1 brk1 fork1 --cpus 1,8,96

Exit codes: 0 done, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
pub struct ScalingArgs {
    /// Workloads [default: mmap1 mmap2 page_fault1 page_fault2 page_fault3 brk1 fork1 build]
    #[arg(value_name = "WORKLOAD", value_parser = workload())]
    pub workloads: Vec<&'static Workload>,
    /// Numbers of tasks
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [1, 2, 4, 8, 16, 32, 48, 96, 384],
        value_parser = super::tasks()
    )]
    pub cpus: Vec<u32>,
    /// Run only processes
    #[arg(long, conflicts_with = "threads")]
    pub processes: bool,
    /// Run only threads
    #[arg(long)]
    pub threads: bool,
    /// Builds of scalevm's own VM
    #[arg(
        long,
        value_name = "PRESET,…",
        value_delimiter = ',',
        default_value = "scalevm",
        value_parser = super::preset()
    )]
    pub vm: Vec<Preset>,
    /// Minimum length of a window in milliseconds; 384 tasks run four times as long [default: 0.4].
    /// Where tasks back off for a millisecond, or queue for a lock, a short window does not include
    /// a turn of each task
    #[arg(long, value_name = "MS")]
    pub at_least: Option<u32>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

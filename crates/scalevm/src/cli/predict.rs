//! The command line of `predict`.

use super::FormatArgs;
use super::sim::MachineArgs;
use baselines::Preset;
use bench::Mode;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The beginning of `predict --help`.
pub const LONG_ABOUT: &str = "\
Predict published curves and compare them with the measured ones

A preset and a machine profile represent the kernel and the machine of each curve in
crates/studies/published. One time is fitted at the smallest number of tasks that was measured; the
other numbers of tasks are simulated. Without a fit there is no prediction. The output has, for each
curve: the rate of the most tasks, predicted and measured; the error, which is the median of
|ln(predicted/measured)| over the numbers of tasks above a quarter of the CPUs; the same error for
the Universal Scalability Law, fitted to the numbers up to a quarter, and for perfect scaling; the
knee (the fewest tasks with 90 % of the peak), predicted and measured; for a pair of kernels, after
over before; the bottleneck; and the band of such a prediction, if any has been compared with a
measurement. docs/results/predictions.md has the whole table.

With --measured the curves are your own: results of `scalevm sweep --json` (or a store), a file in
the format of crates/studies/published (.toml), or a table whose lines have a number of tasks, the
rate of all together and, for a pair of kernels, the rate after the change. The machine is one that
`scalevm calibrate` measured, or one that you name.";

/// `predict`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  The preset and the machine that represent each published curve:
    scalevm predict --list
  The curves of one source:
    scalevm predict kogan-cna
  Only the sources that the simulator's authors may look at:
    scalevm predict --half open
  A table of your own, of mmap1 by threads on a machine with 128 CPUs:
    scalevm predict mmap1 --threads --measured table.txt --vm linux-6.12 --topology 2x32x2

Exit codes: 0 no prediction misses its band, 1 one does, 2 bad usage or input, 3 nothing could be
predicted, 4 a run failed, 130 interrupted.")]
pub struct PredictArgs {
    /// Sources, or single curves, as `--list` names them; with --measured, workloads or recorded
    /// programs (.vmrec) [default: all]
    #[arg(value_name = "SOURCE|CURVE|WORKLOAD")]
    pub which: Vec<String>,
    /// Predict the curves in this file or store instead of published ones
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "half")]
    pub measured: Option<PathBuf>,
    /// The preset that represents the kernel of your curves
    #[arg(long, value_name = "PRESET", requires = "measured")]
    pub vm: Option<Preset>,
    /// The preset that represents the changed kernel, if your curves are pairs
    #[arg(long, value_name = "PRESET", requires = "measured")]
    pub after: Option<Preset>,
    /// The tasks of your table are threads in one address space (default: processes)
    #[arg(long, requires = "measured")]
    pub threads: bool,
    /// Show the preset and the machine that represent each, and run nothing
    #[arg(long, conflicts_with = "unscored")]
    pub list: bool,
    /// Only predict: leave out what was measured
    #[arg(long)]
    pub unscored: bool,
    /// Predict only one half of the sources: those that the simulator's authors may look at while
    /// they change it, or those that they may not
    #[arg(long, value_name = "HALF")]
    pub half: Option<Half>,
    /// Numbers of tasks to simulate on each curve, in addition to the smallest and to those on
    /// which the predicted knee depends
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub counts: u32,
    /// Simulated runs of each number of tasks, each with the next seed
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub seeds: u32,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The simulated machine of your results.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub machine: MachineArgs,
}

impl PredictArgs {
    /// The kind of the tasks of a table.
    pub fn mode(&self) -> Mode {
        match self.threads {
            true => Mode::Threads,
            false => Mode::Processes,
        }
    }
}

/// One of two parts of the sources, drawn by a hash of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// Sources that the simulator's authors may look at
    Open,
    /// Sources that they may not look at
    HeldBack,
}

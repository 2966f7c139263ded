//! The command line of `predict`.

use super::FormatArgs;
use super::sim::MachineArgs;
use baselines::Preset;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The beginning of `predict --help`.
pub const LONG_ABOUT: &str = "\
Predict published curves, and compare

For each curve of crates/studies/published whose kernel and machine something here stands in for: one time is
fitted at the fewest tasks that were measured, and the other counts are simulated. Shown are the rate of
the most tasks as predicted and as measured; the error, which is the median of |ln(predicted/measured)|
over the counts above a quarter of the CPUs; the same of the Universal Scalability Law, fitted to the
counts up to a quarter, and of perfect scaling; the knee (the fewest tasks with 90 % of the peak) as
predicted and as measured; of a pair of kernels, after over before; what holds tasks up; and how far such
a prediction may be off, if that is known. docs/results/predictions.md has the whole table.

With --measured the curves are your own: the results of `scalevm sweep --json` (or a store), on a machine
that `scalevm calibrate` has measured, or one that you name.

Exit codes: 0 no prediction misses its band, 1 one does, 2 bad usage or input, 4 a run failed, 130
interrupted.";

/// `predict`.
#[derive(Args)]
pub struct PredictArgs {
    /// Which sources, or single curves of them, as `--list` names them [default: all]
    #[arg(value_name = "SOURCE|CURVE")]
    pub which: Vec<String>,
    /// Predict the curves in these results, a file or a store, in place of published ones
    #[arg(long, value_name = "FILE|DIR", requires = "vm", conflicts_with_all = ["which", "half"])]
    pub measured: Option<PathBuf>,
    /// The preset that stands in for the kernel of your results
    #[arg(long, value_name = "PRESET", requires = "measured")]
    pub vm: Option<Preset>,
    /// Show what stands in for each, and run nothing
    #[arg(long, conflicts_with = "unscored")]
    pub list: bool,
    /// Predict only: leave out what was measured
    #[arg(long)]
    pub unscored: bool,
    /// Only one half of the sources: those that may be looked at while something is mended, or
    /// those held back
    #[arg(long, value_name = "HALF")]
    pub half: Option<Half>,
    /// Counts of tasks of a curve that are simulated, beside the fewest and those on which the
    /// predicted knee depends
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub counts: u32,
    /// Simulated runs of each count, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// How tables look.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The simulated machine of your results.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub machine: MachineArgs,
}

/// One of two parts of the sources, drawn by a hash of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// Sources that may be looked at
    Open,
    /// Sources held back
    HeldBack,
}

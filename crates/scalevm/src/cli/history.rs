//! The command line of `history`.

use super::On;
use super::compare::percentage;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `history --help` begins with.
pub const LONG_ABOUT: &str = "\
Show how stored results changed over time, or export them

  history DIR|FILE…              all that was kept by --store, or printed by --json

A series is what was run (workload, system, build, tasks) on one machine; it has a
line for each label (--label; by default the kernel's release on os, else scalevm's
commit). The run is what is counted: the median is of the runs of a label, with its
95 % interval; of a single run it is of the samples, and says so. Each label is
compared with the one before, in the words of `compare`. Below the table is where the
level changes from run to run, whatever the labels say, and what else changed there.

Exit codes: 0 shown, whatever changed, 2 bad usage or input.";

/// `history`.
#[derive(Args)]
pub struct HistoryArgs {
    /// Directories that --store has filled, and files that --json has written
    #[arg(value_name = "DIR|FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this workload
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Only what ran on this
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<On>,
    /// Only this build of our VM
    #[arg(long, value_name = "PRESET")]
    pub vm: Option<String>,
    /// Only the last labels of each series
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// The smallest difference that matters [default: 1%; between simulated results 20%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub minimum_effect: Option<f64>,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "export")]
    pub json: bool,
    /// Print in another tool's format; csv and lkp hold one curve
    #[arg(long, value_name = "FORMAT", conflicts_with = "last")]
    pub export: Option<Export>,
    /// Export the runs of this label [default: csv and lkp the one that ran last, openmetrics all]
    #[arg(long, value_name = "NAME", requires = "export")]
    pub label: Option<String>,
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// The table of will-it-scale's runtest.py
    Csv,
    /// The statistics of lkp-tests, as its matrix.json
    Lkp,
    /// OpenMetrics text, for Prometheus and its kin
    Openmetrics,
}

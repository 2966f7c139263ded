//! The command lines of `history` and `report`.

use super::compare::percentage;
use super::{FormatArgs, system};
use bench::On;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The beginning of `history --help`.
pub const HISTORY_ABOUT: &str = "\
Show how stored results changed over time, or export them

  history DIR|FILE…              all that was kept by --store, or printed by --json

A series is all runs of one subject (workload, system, build, tasks) on one machine; it has a
line for each label (--label; by default the kernel's release on os, else scalevm's
commit). The median is that of the runs of a label, with its 95 % interval; for a
single run it is that of the samples, and the table says so. Each label is compared with
the one before, in the words of `compare`. Below the table are the places where the level changes
from run to run, whatever the labels say, and other changes there.

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
    /// Only results of this system
    #[arg(long, value_name = "SYSTEM", value_parser = system())]
    pub on: Option<On>,
    /// Only this build of our VM
    #[arg(long, value_name = "PRESET")]
    pub vm: Option<String>,
    /// Only the last labels of each series
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// The smallest difference that matters [default: 1%; between simulated results 50%, as the
    /// model ranks rates from 1.5 times apart on]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, allow_hyphen_values = true)]
    pub minimum_effect: Option<f64>,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "export")]
    pub json: bool,
    /// How tables look.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Print one curve in another tool's format
    #[arg(long, value_name = "FORMAT", conflicts_with = "last")]
    pub export: Option<Export>,
    /// Export the runs of this label [default: the label that ran last]
    #[arg(long, value_name = "NAME", requires = "export")]
    pub label: Option<String>,
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Export {
    /// The table of will-it-scale's runtest.py
    Csv,
}

/// The long description of `report`.
pub const REPORT_ABOUT: &str = "\
Write results as one page of HTML: the verdict, curves, before and after, locks, flame graphs, \
the machine, and how to repeat it all.

FILES are output of `run`, `sweep`, `compare` and `profile` with --json, in any mixture, stores \
(see --store of `run`), and folders that `profile` has written. Their order matters: of the files that hold runs of the same thing the \
first is before and the last is after.";

/// `report`.
#[derive(Args)]
pub struct ReportArgs {
    /// Result files, stores, folders of profiles; before comes before after
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Where to write the page
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Print one JSON object about the written page
    #[arg(long)]
    pub json: bool,
}

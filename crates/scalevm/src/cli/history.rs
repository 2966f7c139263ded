//! The command lines of `history` and `report`.

use super::compare::percentage;
use super::{FormatArgs, system};
use bench::On;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// The beginning of `history --help`.
pub const HISTORY_ABOUT: &str = "\
Show how stored results changed over time, or export them

  history DIR|FILE…              results that --store kept, or --json printed

A series is all runs of one subject (workload, system, build, tasks) on one machine. It has a line
for each label (--label; by default the kernel's release on os, else scalevm's commit). The line
shows the median of the label's runs with its 95 % interval; for a single run it shows the median of
the samples, and says so. Each label is compared with the previous one, in the words of `compare`.
Below the table are the runs at which the level changes, whatever their labels, and what else
changed with them.";

/// `history`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  What changed, and when:
    scalevm history results --workload mmap1
  For will-it-scale's plots:
    scalevm history results --workload mmap1 --on os --export csv

Exit codes: 0 shown, with or without changes, 2 bad usage or input.")]
pub struct HistoryArgs {
    /// Directories that --store filled, and files that --json wrote
    #[arg(value_name = "DIR|FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// Show only this workload
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Show only results of this system
    #[arg(long, value_name = "SYSTEM", value_parser = system())]
    pub on: Option<On>,
    /// Show only this build of scalevm's own VM
    #[arg(long, value_name = "PRESET")]
    pub vm: Option<String>,
    /// Show only the last N labels of each series
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// The smallest difference that matters [default: 1%; between simulated results 50%, as the
    /// model ranks only rates that differ by a factor of 1.5 or more]
    #[arg(long, value_name = "PERCENT", value_parser = percentage, allow_hyphen_values = true)]
    pub minimum_effect: Option<f64>,
    /// Print one JSON object per line
    #[arg(long, conflicts_with = "export")]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Print one curve in another tool's format
    #[arg(long, value_name = "FORMAT", conflicts_with = "last")]
    pub export: Option<Export>,
    /// Export the runs of this label [default: the most recent]
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
Write results as an HTML page

The page has the verdict, curves, before and after, locks, flame graphs, the machine, and the
commands that repeat it all.

FILES are output of `run`, `sweep`, `compare` and `profile` with --json, in any mixture, stores (see
--store of `run`), and directories that `profile` wrote. Their order matters: among files with runs
of the same subject, the first is before and the last is after.";

/// `report`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Before and after, on one page:
    scalevm report before.jsonl after.jsonl -o report.html

Exit codes: 0 done, 2 bad usage or input.")]
pub struct ReportArgs {
    /// Result files, stores, and directories of profiles; before comes before after
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// The file to write the page to
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Print one JSON object that describes the page
    #[arg(long)]
    pub json: bool,
}

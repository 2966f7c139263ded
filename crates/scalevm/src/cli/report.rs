//! The arguments of `report`.

use clap::Args;
use std::path::PathBuf;

/// What `report` does, at length.
pub const LONG_ABOUT: &str = "\
Write results as one page of HTML: the verdict, curves, before and after, locks, flame graphs, \
the machine, and how to take it all again.

FILES are what `run`, `sweep`, `compare` and `profile` write with --json, in any mixture, stores \
(see --store of `run`), and folders that `profile` has written. Their order matters: of the files that hold runs of the same thing the \
first is before and the last is after.";

/// `report`.
#[derive(Args)]
pub struct ReportArgs {
    /// Result files, stores, folders of profiles; before comes before after
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Write the page there
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
    /// Print one JSON object on what was written
    #[arg(long)]
    pub json: bool,
}

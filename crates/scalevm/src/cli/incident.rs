//! The command line of `incident`.

use super::FormatArgs;
use bench::On;
use clap::{Args, Subcommand};

/// The beginning of `incident --help`.
pub const LONG_ABOUT: &str = "\
Repeat incidents: real programs whose memory operations did not scale

Each incident is a story that was told in public, a recording of a program that does to its memory
what the story's program did, and a second one, or another system, with the fix.
incidents/README.md says how to add one of your own: a folder with a page, a recording and a few
lines about them.";

/// The beginning of `incident run --help`.
const RUN_ABOUT: &str = "\
Run incidents before and after their fix, and compare what is found with what was told

On sim, an incident runs on the machine and under the preset nearest to those of its story. The
output has requests per second before and after, the factor, the one that was published, and the
bottleneck. On other systems the same programs run on this computer; comparisons of machines and of
kernels are left out there, and on os it takes root to name the bottleneck.";

/// `incident`.
#[derive(Subcommand)]
#[command(after_long_help = "\
Examples:
  What happened to a server of WebAssembly, and if it happens here:
    scalevm incident run spin

Exit codes: 2 bad usage; otherwise those of `incident list`, `incident show` and `incident run`.")]
pub enum IncidentCommand {
    /// Show all incidents
    #[command(after_long_help = "\
Examples:
  All incidents:
    scalevm incident list

Exit codes: 0 done, 2 bad usage.")]
    List(IncidentListArgs),
    /// Print the page of an incident
    #[command(after_long_help = "\
Examples:
  A story:
    scalevm incident show bun

Exit codes: 0 done, 2 bad usage or input.")]
    Show(IncidentShowArgs),
    /// Run incidents before and after their fix, and compare what is found with what was told
    #[command(long_about = RUN_ABOUT)]
    Run(IncidentRunArgs),
}

/// `incident list`.
#[derive(Args)]
pub struct IncidentListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// `incident show`.
#[derive(Args)]
pub struct IncidentShowArgs {
    /// The incident, by name, or the folder of one of your own
    #[arg(value_name = "NAME|DIR")]
    pub incident: String,
}

/// `incident run`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  All incidents:
    scalevm incident run
  One of your own, on this computer's kernel:
    scalevm incident run ./outage --on os

Exit codes: 0 all is found as it was told, or the difference is explained, 1 something is not, 2 bad
usage or input, 4 a run failed, 130 interrupted.")]
pub struct IncidentRunArgs {
    /// Incidents, by name, or folders of your own [default: all]
    #[arg(value_name = "NAME|DIR")]
    pub incidents: Vec<String>,
    /// The system to run on
    #[arg(long, value_name = "SYSTEM", default_value = "sim", value_parser = super::system())]
    pub on: On,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
}

//! The command line by which scalevm starts itself as the host of an own workload.

use clap::Args;
use std::os::fd::RawFd;
use std::path::PathBuf;

/// `host`, which scalevm itself starts.
#[derive(Args)]
pub struct HostArgs {
    /// A shared object with a test case
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub object: Option<PathBuf>,
    /// A command to run repeatedly
    #[arg(long, allow_hyphen_values = true)]
    pub command: Option<String>,
    /// Number of tasks
    #[arg(long)]
    pub tasks: usize,
    /// Tasks are threads
    #[arg(long)]
    pub threads: bool,
    /// Pin tasks to hardware threads
    #[arg(long)]
    pub smt: bool,
    /// Do not pin tasks
    #[arg(long)]
    pub no_affinity: bool,
    /// The process that started this one
    #[arg(long)]
    pub parent: i32,
    /// Descriptor of the channel to it
    #[arg(long, value_parser = descriptor())]
    pub channel: RawFd,
    /// Descriptor of the tasks' counters
    #[arg(long, value_parser = descriptor())]
    pub area: RawFd,
}

/// Not one of stdin, stdout and stderr.
fn descriptor() -> clap::builder::RangedI64ValueParser<RawFd> {
    clap::value_parser!(RawFd).range(3..)
}

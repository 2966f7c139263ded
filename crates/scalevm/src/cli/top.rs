//! The command line of `top`.

use super::profile::AttachedArgs;
use super::seconds;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const LONG_ABOUT: &str = "\
Watch the locks that running programs wait for, and their threads

The upper table has the locks that watched threads waited for in the last interval: how many waited
at a time, how often and how long, and who holds the lock where that is known. The lower table has
the threads or processes: their time on a CPU, their time held up by locks, devices or a busy CPU,
and what they waited for most. Nothing is started, stopped or changed.

It needs root (or CAP_PERFMON); without it, only busy time of your own programs is seen. Keys sort
the tables, freeze them, switch between threads and processes, and quit; the last line names them.
Where standard output is not a terminal, each interval is a block of plain lines.";

/// `top`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  All programs of this computer:
    scalevm top
  A service or a container:
    scalevm top --cgroup system.slice/redis.service
  Ten intervals of five seconds, for a script:
    scalevm top --pid 4711 --interval 5 --count 10 --json
  Metrics for the textfile collector of node_exporter:
    scalevm top --interval 15 --prometheus /var/lib/node_exporter/textfile/scalevm.prom

Exit codes: 0 done, 2 bad usage or input, 4 the recording failed, 130 interrupted. Ctrl-C is the
normal end unless --count names another.")]
pub struct TopArgs {
    /// The processes [default: all].
    #[command(flatten)]
    pub attached: AttachedArgs,
    /// Length of an interval in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// End after N intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print one JSON object per interval
    #[arg(long)]
    pub json: bool,
    /// Print nothing, and write metrics to this file instead, in the text format of Prometheus; the
    /// file is replaced as a whole after each interval
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub prometheus: Option<PathBuf>,
}

fn interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    seconds(text)
        .ok()
        .filter(|&span| span >= LEAST)
        .ok_or_else(|| "expected an interval from 0.1 to 86400 seconds, e.g. 2".into())
}

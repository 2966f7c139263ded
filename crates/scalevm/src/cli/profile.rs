//! The command line of `profile`.

use super::{CommonArgs, On, WorkloadArgs, preset, tasks};
use crate::harness::Schedule;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const LONG_ABOUT: &str = "\
Shows where the tasks' time goes: busy stacks as a flame graph, waits as another, the locks \
waited for with their callers, and one sentence that names the bottleneck.

The workload runs twice: unwatched, for its rate, and watched. On os, busy cycles are sampled \
and the kernel's lock tracepoints recorded on all CPUs, for which it takes root (or \
CAP_PERFMON); without, what can be seen is shown and what is missing is said. Kernel writers \
that spin before the tracepoints see them wait are counted from the samples, in a column of \
their own. On hosted and sim our own lock profile, and the simulator's accounts, say the same.

--diff compares two profiles instead: what costs more is red, what costs less is blue.";

/// `profile`.
#[derive(Args)]
pub struct ProfileArgs {
    /// What to profile.
    #[command(flatten)]
    pub what: Option<WorkloadArgs>,
    /// How many tasks
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = tasks())]
    pub tasks: u32,
    /// How our VM is built; implies `--on hosted` if nothing else is said
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<String>,
    /// Samples of busy CPUs a second
    #[arg(long, value_name = "HZ", default_value_t = perf::Options::default().frequency, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub frequency: u32,
    /// Compare two profiles: directories that `profile` has written, or files of its JSON
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], group = "WorkloadArgs")]
    pub diff: Vec<PathBuf>,
    /// Where to put flame graphs and stacks [default: profile-WORKLOAD-SYSTEM-N, and
    /// with --json nowhere]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl ProfileArgs {
    /// How long to run, unwatched and watched each.
    pub fn schedule(&self, on: On) -> Schedule {
        watching(&self.common, on)
    }
}

/// As [`CommonArgs::schedule`], with shorter defaults: stacks are seen sooner than rates.
pub fn watching(common: &CommonArgs, on: On) -> Schedule {
    let schedule = common.schedule(on);
    let real = on != On::Sim;
    Schedule {
        warmup: common.warmup.unwrap_or(u32::from(real)),
        samples: common.samples.unwrap_or(if real { 3 } else { 1 }).max(1),
        duration: match real {
            true => common.duration.unwrap_or(Duration::from_secs(1)),
            false => schedule.duration,
        },
    }
}

//! The command line.

mod calibrate;
mod check;
mod choice;
mod compare;
mod completions;
mod doctor;
mod history;
mod host;
mod keep;
mod latency;
mod locks;
mod man;
mod profile;
mod report;
mod reproduce;
mod scaling;
mod sim;

pub use calibrate::CalibrateArgs;
pub use check::{Check, CheckArgs, ConflictsArgs, FuzzArgs, ModelArgs, RacesArgs, SequencesArgs};
pub use choice::{Choice, WorkloadArgs};
pub use compare::CompareArgs;
pub use completions::CompletionsArgs;
pub use doctor::DoctorArgs;
pub use history::{Export, HistoryArgs};
pub use host::HostArgs;
pub use keep::KeepArgs;
pub use latency::LatencyArgs;
pub use locks::{LocksArgs, LocksOn};
pub use man::ManArgs;
pub use profile::{ProfileArgs, watching};
pub use report::ReportArgs;
pub use reproduce::ReproduceArgs;
pub use scaling::ScalingArgs;
pub use sim::SimArgs;

use crate::catalog;
use crate::harness::{Mode, Schedule};
use crate::tasks::Affinity;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::time::Duration;

/// The most tasks one measurement may have, as in will-it-scale.
pub const MAX_TASKS: u32 = 2048;

const EXIT_CODES: &str = "\
Exit codes: 0 done (compared: the same or better), 1 compared: slower; checked: broken; \
reproduced: something misses, \
2 bad usage or input, 3 compared: inconclusive; doctor: figures would be doubtful, 4 a task or the target failed, \
130 interrupted (what was finished is kept).";

/// Why does a memory operation not scale, and did the change fix it?
#[derive(Parser)]
#[command(name = "scalevm", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do; the story of mmap1 if nothing is said
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Show workloads, systems, presets, locks, machines and topologies
    List(ListArgs),
    /// Run a workload as will-it-scale does
    Run(RunArgs),
    /// Run a workload with more and more tasks and draw the curve
    Sweep(SweepArgs),
    /// Show where the time goes: flame graphs, locks, the bottleneck
    #[command(long_about = profile::LONG_ABOUT)]
    Profile(ProfileArgs),
    /// Compare result files, or interleaved runs of two systems or commands
    #[command(long_about = compare::LONG_ABOUT)]
    Compare(CompareArgs),
    /// Show how stored results changed over time, or export them
    #[command(long_about = history::LONG_ABOUT)]
    History(HistoryArgs),
    /// Write results as one page of HTML
    #[command(long_about = report::LONG_ABOUT)]
    Report(ReportArgs),
    /// Tell how late a player is beside a workload
    #[command(long_about = latency::LONG_ABOUT)]
    Latency(LatencyArgs),
    /// Measure locks, epochs and counters, ours beside those of others
    Locks(LocksArgs),
    /// Repeat the seeds' experiments on simulated machines
    #[command(long_about = reproduce::LONG_ABOUT)]
    Reproduce(ReproduceArgs),
    /// Tell how workloads scale on simulated machines
    #[command(long_about = scaling::LONG_ABOUT)]
    Scaling(ScalingArgs),
    /// Measure this computer and write it as a machine profile
    Calibrate(CalibrateArgs),
    /// Check on simulated machines: shared cache lines, and schedules that break something
    Check(CheckArgs),
    /// Say whether one can measure here, and what to change if not
    #[command(long_about = doctor::LONG_ABOUT)]
    Doctor(DoctorArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
    /// Print what a shell needs to complete this command
    Completions(CompletionsArgs),
    /// Run a workload of the user's own; started by scalevm itself
    #[command(hide = true)]
    Host(HostArgs),
}

/// `list`.
#[derive(Args)]
pub struct ListArgs {
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `run`.
#[derive(Args)]
pub struct RunArgs {
    /// What runs.
    #[command(flatten)]
    pub what: WorkloadArgs,
    /// How many tasks
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = tasks())]
    pub tasks: u32,
    /// How our VM is built; implies `--on hosted` if nothing else is said
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<String>,
    /// Count to N, all tasks together, and print real, user and sys seconds as time(1) does; each
    /// sample is a run of its own
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["duration", "warmup"],
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub count: Option<u64>,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `sweep`.
#[derive(Args)]
pub struct SweepArgs {
    /// What runs.
    #[command(flatten)]
    pub what: WorkloadArgs,
    /// Numbers of tasks [default: powers of two up to the number of CPUs, and that]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = tasks())]
    pub cpus: Vec<u32>,
    /// Profile each curve at its peak and at its end, and say what changed
    #[arg(long)]
    pub why: bool,
    /// How our VM is built, one curve each; implies `--on hosted` if nothing else is said
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', value_parser = preset())]
    pub vm: Vec<String>,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What `run` and `sweep` have in common.
#[derive(Args)]
pub struct CommonArgs {
    /// How many samples count; 0 goes on until Ctrl-C [default: 5]
    #[arg(short, long, value_name = "S", conflicts_with = "seeds")]
    pub samples: Option<u32>,
    /// Tasks are processes, each with its own address space (default)
    #[arg(long, conflicts_with = "threads")]
    pub processes: bool,
    /// Tasks are threads in one address space
    #[arg(long)]
    pub threads: bool,
    /// What the workload runs on [default: os]
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<On>,
    /// Samples before those that count [default: 6; simulated: 0, each run warms itself up]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Length of a sample [default: 1; simulated: 0.01]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Pin tasks to hardware threads (default: to cores)
    #[arg(short = 'm', long)]
    pub smt: bool,
    /// Do not pin tasks
    #[arg(short, long, conflicts_with = "smt")]
    pub no_affinity: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Whether results are kept.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

/// What a workload runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The kernel of this computer.
    Os,
    /// Our VM on threads.
    Hosted,
    /// Our VM on a simulated machine.
    Sim,
}

impl On {
    /// Its name and line in the catalogue.
    pub fn entry(self) -> &'static catalog::Entry {
        &catalog::SYSTEMS[self as usize]
    }
}

impl ValueEnum for On {
    fn value_variants<'a>() -> &'a [Self] {
        &[On::Os, On::Hosted, On::Sim] // in the order of the catalogue
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.entry().name).help(self.entry().about))
    }
}

impl CommonArgs {
    /// What the tasks are.
    pub fn mode(&self) -> Mode {
        match self.threads {
            true => Mode::Threads,
            false => Mode::Processes,
        }
    }

    /// Where tasks are pinned.
    pub fn affinity(&self) -> Affinity {
        match (self.no_affinity, self.smt) {
            (true, _) => Affinity::None,
            (false, true) => Affinity::Cpus,
            (false, false) => Affinity::Cores,
        }
    }

    /// How long to measure.
    pub fn schedule(&self, on: On) -> Schedule {
        let (warmup, duration) = match on {
            On::Sim => (0, SIMULATED),
            On::Os | On::Hosted => (6, Duration::from_secs(1)),
        };
        Schedule {
            warmup: self.warmup.unwrap_or(warmup),
            samples: self.samples.or(self.sim.seeds).unwrap_or(5),
            duration: self.duration.unwrap_or(duration),
        }
    }
}

/// The length of a simulated sample: long enough for the longest back-off to be an episode.
const SIMULATED: Duration = Duration::from_millis(10);

fn preset() -> impl TypedValueParser<Value = String> {
    let preset = |entry: &catalog::Entry| PossibleValue::new(entry.name).help(entry.about);
    PossibleValuesParser::new(catalog::PRESETS.iter().map(preset))
}

fn tasks() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MAX_TASKS))
}

fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=DAY).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) => Err("a sample lasts from 0.001 to 86400 seconds".into()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn systems_stand_in_the_order_of_the_catalogue() {
        let variants = On::value_variants();
        assert_eq!(variants.len(), catalog::SYSTEMS.len());
        assert_eq!(On::Os.entry().name, "os");
        assert_eq!(On::Hosted.entry().name, "hosted");
        assert_eq!(On::Sim.entry().name, "sim");
    }

    #[test]
    fn seconds_are_checked() {
        assert_eq!(seconds("0.05"), Ok(Duration::from_millis(50)));
        for bad in ["0", "-1", "nan", "inf", "1e9", "x", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

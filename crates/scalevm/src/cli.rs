//! The command line.

mod campaign;
mod check;
mod choice;
mod compare;
mod computer;
mod definition;
mod history;
mod host;
mod incident;
mod kernel;
mod latency;
mod locks;
mod predict;
mod profile;
mod record;
mod recording;
mod reproduce;
mod results;
mod sim;
mod top;
mod whatif;

pub use campaign::{CampaignArgs, CampaignCommand, CampaignRunArgs, Engine};
pub use check::{Check, CheckArgs, ConflictsArgs, FuzzArgs, ModelArgs, RacesArgs, SequencesArgs};
pub use choice::{Choice, RECORDING, RecordedArgs, WorkloadArgs};
pub use compare::CompareArgs;
pub use computer::{CalibrateArgs, DoctorArgs};
pub use definition::{CompletionsArgs, ManArgs, definition, parse, told};
pub use history::{Export, HistoryArgs, ReportArgs};
pub use host::HostArgs;
pub use incident::{IncidentCommand, IncidentRunArgs};
pub use kernel::{KernelArgs, KernelCommand, KernelCompareArgs};
pub use latency::LatencyArgs;
pub use locks::{LocksArgs, LocksOn};
pub use predict::{Half, PredictArgs};
pub use profile::{ProfileArgs, watching};
pub use record::RecordArgs;
pub use recording::RecordingArgs;
pub use reproduce::ReproduceArgs;
pub use results::{FormatArgs, KeepArgs};
pub use sim::{ConditionArgs, MachineArgs, SimArgs};
pub use top::TopArgs;
pub use whatif::WhatIfArgs;

use baselines::Preset;
use bench::simulated::{Conditions, Placement};
use bench::tasks::Affinity;
use bench::{MAX_TASKS, Mode, On, Schedule};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::time::Duration;

/// The end of `scalevm --help`.
const END: &str = "\
Examples:
  Tell the story of mmap1, and leave a page:
    scalevm
  See how a workload scales here:
    scalevm sweep mmap1 --threads
  See why it does not scale:
    scalevm profile mmap1 --threads -t 4

Exit codes:
  0    done; compare: B is the same or better
  1    compare: B is slower; check: something is broken; reproduce, predict, incident: a figure
       misses
  2    bad usage or input, or output that cannot be written
  3    compare: inconclusive; doctor: figures from here would be doubtful
  4    a task or the target failed
  130  interrupted; finished results are kept";

/// Why does a memory operation not scale, and did the change fix it?
#[derive(Parser)]
#[command(name = "scalevm", version, after_long_help = END)]
pub struct Cli {
    /// The command to run [default: tell the story of mmap1]
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The command.
#[derive(Subcommand)]
pub enum Command {
    /// Show workloads, systems, presets, locks, machines and topologies
    List(ListArgs),
    /// Run a workload as will-it-scale does
    Run(RunArgs),
    /// Run workloads with increasing numbers of tasks and draw the curve
    #[command(long_about = SWEEP_ABOUT)]
    Sweep(SweepArgs),
    /// Show where time goes: flame graphs, locks, the bottleneck
    #[command(long_about = profile::LONG_ABOUT)]
    Profile(ProfileArgs),
    /// Watch the locks that running programs wait for, and their threads
    #[command(long_about = top::LONG_ABOUT)]
    Top(TopArgs),
    /// Record the memory operations of a program, to replay them elsewhere
    #[command(long_about = record::LONG_ABOUT)]
    Record(RecordArgs),
    /// Show what is in a recording of memory operations, or write a part of it
    #[command(long_about = recording::LONG_ABOUT)]
    Recording(RecordingArgs),
    /// Compare result files, or interleaved runs of two systems or commands
    #[command(long_about = compare::LONG_ABOUT)]
    Compare(CompareArgs),
    /// Show how stored results changed over time, or export them
    #[command(long_about = history::HISTORY_ABOUT)]
    History(HistoryArgs),
    /// Write results as an HTML page
    #[command(long_about = history::REPORT_ABOUT)]
    Report(ReportArgs),
    /// Say what a workload would gain if a lock, a line or an interrupt cost nothing
    #[command(name = "whatif", long_about = whatif::LONG_ABOUT)]
    WhatIf(Box<WhatIfArgs>),
    /// Measure how late the frames of a video player are during a build
    #[command(long_about = latency::LONG_ABOUT)]
    Latency(LatencyArgs),
    /// Benchmark lock, epoch and counter algorithms: scalevm's own and other projects'
    Locks(LocksArgs),
    /// Repeat the experiments of the case studies on simulated machines
    #[command(long_about = reproduce::LONG_ABOUT)]
    Reproduce(ReproduceArgs),
    /// Predict published curves and compare them with the measured ones
    #[command(long_about = predict::LONG_ABOUT)]
    Predict(PredictArgs),
    /// Repeat incidents: real programs whose memory operations did not scale
    #[command(subcommand, long_about = incident::LONG_ABOUT)]
    Incident(IncidentCommand),
    /// Run many simulations, here or as a Slurm array job
    #[command(subcommand, long_about = campaign::LONG_ABOUT)]
    Campaign(CampaignCommand),
    /// Measure this computer and write it as a machine profile
    Calibrate(CalibrateArgs),
    /// Check the VM: shared cache lines, schedules that break it, differences from a model
    Check(CheckArgs),
    /// Check whether this computer is fit for measurements, and say what to change
    #[command(long_about = computer::DOCTOR_ABOUT)]
    Doctor(DoctorArgs),
    /// Run programs on scalevm's own kernel, under QEMU
    #[command(long_about = kernel::LONG_ABOUT)]
    Kernel(KernelArgs),
    /// Print the manual page, or write the pages of all commands
    Man(ManArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Run a workload of the user's own; scalevm itself starts this command
    #[command(hide = true)]
    Host(HostArgs),
}

/// `list`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  All names, for a script:
    scalevm list --json

Exit codes: 0 done, 2 bad usage.")]
pub struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `run`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  As will-it-scale's mmap1_threads:
    scalevm run mmap1 -t 4 --threads
  A workload of your own:
    scalevm run ./mine.c -t 2
  On a simulated machine of 96 CPUs, and keep it:
    scalevm run mmap1 -t 96 --machine freebsd-96 --vm freebsd-di --store results

Exit codes: 0 done, 2 bad usage or input, 4 a task failed, 130 interrupted.")]
pub struct RunArgs {
    /// The workload.
    #[command(flatten)]
    pub what: WorkloadArgs,
    /// How a recorded program is run.
    #[command(flatten)]
    pub recorded: RecordedArgs,
    /// Number of tasks
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = tasks())]
    pub tasks: u32,
    /// The build of scalevm's own VM (see `scalevm list`); implies `--on hosted` without --on
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<Preset>,
    /// Let all tasks together count to N, or a recorded program run N times, and print real, user
    /// and sys seconds as time(1) does; each sample is a separate run
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

/// The beginning of `sweep --help`.
const SWEEP_ABOUT: &str = "\
Run workloads with increasing numbers of tasks and draw the curve

For several workloads, or kinds of tasks, the output has tables instead: the rate at each number of
tasks, and that rate over one task's. A line for each curve says that it scales, or which part of
linear is left at the first number of tasks at which less than 0.9 is, and on sim the bottleneck.";

/// `sweep`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  The kernel of this computer:
    scalevm sweep page_fault1 --threads --json
  Two builds of scalevm's own VM on a simulated machine:
    scalevm sweep mmap1 --machine freebsd-96 --vm freebsd-di,scalevm
  Three workloads, by processes and by threads:
    scalevm sweep mmap1 brk1 fork1 --both --on sim --cpus 1,8,96

Exit codes: 0 done, 2 bad usage or input, 4 a task failed, 130 interrupted.")]
pub struct SweepArgs {
    /// The workload.
    #[command(flatten)]
    pub what: WorkloadArgs,
    /// How a recorded program is run.
    #[command(flatten)]
    pub recorded: RecordedArgs,
    /// More workloads
    #[arg(value_parser = choice::parser(), value_name = "WORKLOAD|FILE")]
    pub more: Vec<Choice>,
    /// Tasks are processes, and then threads
    #[arg(long, conflicts_with_all = ["processes", "threads", "command"])]
    pub both: bool,
    /// Where a simulated machine has fewer CPUs than tasks, add sockets (default: tasks share CPUs)
    #[arg(long)]
    pub grow: bool,
    /// Numbers of tasks [default: powers of two below the number of CPUs, and that number]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = tasks())]
    pub cpus: Vec<u32>,
    /// Profile each curve at its peak and at its end, and show what changed
    #[arg(long)]
    pub why: bool,
    /// Builds of scalevm's own VM, a curve for each; implies `--on hosted` without --on
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', value_parser = preset())]
    pub vm: Vec<Preset>,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The tasks' kind, system and pinning.
#[derive(Args, Clone, Copy, Default)]
pub struct TaskArgs {
    /// Tasks are processes, each with its own address space (default)
    #[arg(long, conflicts_with = "threads")]
    pub processes: bool,
    /// Tasks are threads in one address space
    #[arg(long)]
    pub threads: bool,
    /// The system to run on [default: os]
    #[arg(long, value_name = "SYSTEM", value_parser = system())]
    pub on: Option<On>,
    /// Pin tasks to hardware threads (default: to cores)
    #[arg(short = 'm', long)]
    pub smt: bool,
    /// Do not pin tasks
    #[arg(short, long, conflicts_with = "smt")]
    pub no_affinity: bool,
    /// Run more than N tasks on N threads, under the scheduler of the build (default: each task is
    /// a thread, which this computer's kernel schedules); implies `--on hosted` without --on
    #[arg(long, value_name = "N", value_parser = cpus())]
    pub hosted_cpus: Option<u32>,
}

/// The options that `run` and `sweep` share.
#[derive(Args, Default)]
pub struct CommonArgs {
    /// Samples to measure; 0 measures until Ctrl-C [default: 5]
    #[arg(short, long, value_name = "S", conflicts_with = "seeds")]
    pub samples: Option<u32>,
    /// The tasks' kind.
    #[command(flatten)]
    pub tasks: TaskArgs,
    /// Samples to discard first [default: 6; simulated: 0, as each run warms itself up]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Length of each sample [default: 1; simulated: 0.01]; a simulated one is longer if one task
    /// alone needs more for 20 operations, up to 0.04
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Where results are kept.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
    /// The conditions of simulated runs.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub conditions: ConditionArgs,
}

impl CommonArgs {
    /// The tasks' kind.
    pub fn mode(&self) -> Mode {
        if self.tasks.threads {
            Mode::Threads
        } else {
            Mode::Processes
        }
    }

    /// Where tasks are pinned.
    pub fn affinity(&self) -> Affinity {
        affinity(self.tasks.no_affinity, self.tasks.smt)
    }

    /// The first option given that only a simulated machine has a use for.
    pub fn simulated(&self) -> Option<&'static str> {
        self.sim.given().or(self.conditions.given())
    }

    /// The conditions of simulated runs: windows hold whole iterations unless their length is
    /// requested.
    pub fn conditions(&self) -> Conditions {
        let unpinned = if self.tasks.no_affinity {
            Placement::Spread
        } else {
            Placement::Pack
        };
        Conditions {
            place: self.conditions.place.unwrap_or(unpinned),
            whole: self.duration.is_none(),
            disturbed: self.conditions.disturb,
            ..Conditions::default()
        }
    }

    /// The schedule of the measurement.
    pub fn schedule(&self, on: On) -> Schedule {
        let (warmup, duration) = match on {
            On::Sim => (0, SIMULATED),
            On::Os | On::Hosted | On::Kernel => (6, Duration::from_secs(1)),
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

/// Where tasks are pinned.
pub fn affinity(none: bool, smt: bool) -> Affinity {
    match (none, smt) {
        (true, _) => Affinity::None,
        (false, true) => Affinity::Cpus,
        (false, false) => Affinity::Cores,
    }
}

fn preset() -> impl TypedValueParser<Value = Preset> {
    let preset = |preset: Preset| PossibleValue::new(preset.name).help(preset.description);
    PossibleValuesParser::new(Preset::ALL.map(preset)).map(|name| {
        name.parse()
            .expect("the parser lets only known names through")
    })
}

fn system() -> impl TypedValueParser<Value = On> {
    let system = |on: On| PossibleValue::new(on.name()).help(on.about());
    PossibleValuesParser::new(On::ALL.map(system))
        .map(|name| On::named(&name).expect("the parser lets only known names through"))
}

fn cpus() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=machine::MAX_CPUS as i64)
}

fn tasks() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(MAX_TASKS))
}

fn seconds(text: &str) -> Result<Duration, String> {
    const DAY: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=DAY).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a duration from 0.001 to 86400 seconds, e.g. 0.5".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    #[test]
    fn seconds_are_checked() {
        assert_eq!(seconds("0.05"), Ok(Duration::from_millis(50)));
        for bad in ["0", "-1", "nan", "inf", "1e9", "x", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

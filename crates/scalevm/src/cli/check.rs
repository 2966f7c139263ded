//! The command line of `check`.

use super::{preset, seconds};
use baselines::Preset;
use checks::{races, sequences};
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// The beginning of `check races --help`.
const RACES_ABOUT: &str = "\
Search for schedules that break locks, epochs or the VM

Each scenario runs on small simulated machines of random shapes with random delays, once for each
seed. The checks run all the time: mutual exclusion, exact limits, sections and callbacks of
epochs, contents of memory, use of translations after their frames were freed, owners of frames,
lost wake-ups and other deadlocks, livelocks. The same seed gives the same run.";

/// The beginning of `check conflicts --help`.
const CONFLICTS_ABOUT: &str = "\
Find cache lines that operations share although they commute

Two CPUs of a simulated machine perform one operation each, after a warm-up: on separate memory, or
on the same pages of a file, in two processes; or tasks of two sockets sleep and wake other tasks of
their own socket, under the preset's scheduler. A conflict is a line that one CPU wrote and the
other touched. Conflicts of other presets than the default are only shown.";

/// The beginning of `check locks --help`.
const LOCKS_ABOUT: &str = "\
Show which locks each operation takes, and in which lines CPUs meet in it

One CPU of a simulated machine performs each operation on its own memory, after a warm-up, and the
table says how often it acquired locks of each class. Then CPUs of two sockets perform it, as two
threads of a process and as two processes, and the table names the lines that one CPU wrote and the
other touched. The output is Markdown.";

/// The beginning of `check fuzz --help`.
const FUZZ_ABOUT: &str = "\
Compare the VM with a naive model while memory is short and things fail

Like `check model`, but most frames are withheld, so that pages are evicted and read back all the
time, and allocations of frames and I/O on files and swap space fail at random. The VM may then
refuse an operation, which must have changed nothing; at the end nothing may be lost. A sequence
records what is scarce when, so --replay fails in the same place.";

/// The beginning of `check model --help`.
const MODEL_ABOUT: &str = "\
Compare the VM with a naive model, operation by operation

Random sequences of mmap, munmap, mprotect, mremap, madvise, fork, loads, stores and other
operations, in several processes and files, run one operation at a time, each on one of the CPUs of
a machine whose TLBs are modelled. The first difference is shortened and printed as text that
--replay runs again.";

/// The beginning of `check oracle --help`.
const ORACLE_ABOUT: &str = "\
Compare the VM with the kernel of this computer, operation by operation

Like `check model`, but real processes also perform each operation. What the model leaves open is
not compared. A difference that the kernel does not show again is counted separately, as the kernel
may drop or move pages at any time.";

/// `check`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Search for races in all scenarios:
    scalevm check races

Exit codes: 0 done, 1 something is broken, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
pub struct CheckArgs {
    /// The check to run
    #[command(subcommand)]
    pub what: Check,
}

/// The check.
#[derive(Subcommand)]
pub enum Check {
    /// Find cache lines that operations share although they commute
    #[command(long_about = CONFLICTS_ABOUT)]
    #[command(after_long_help = "\
Examples:
  Of one preset:
    scalevm check conflicts --vm freebsd-di

Exit codes: 0 as listed, 1 the default VM has a conflict that is not listed as known, or lacks one
that is, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
    Conflicts(ConflictsArgs),
    /// Show which locks each operation takes, and in which lines CPUs meet in it
    #[command(long_about = LOCKS_ABOUT)]
    #[command(after_long_help = "\
Examples:
  Of two presets:
    scalevm check locks --vm linux-3.0-fixes,scalevm

Exit codes: 0 done, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
    Locks(ConflictsArgs),
    /// Compare the VM with a naive model while memory is short and things fail
    #[command(long_about = FUZZ_ABOUT)]
    Fuzz(FuzzArgs),
    /// Compare the VM with a naive model, operation by operation
    #[command(long_about = MODEL_ABOUT)]
    Model(ModelArgs),
    /// Compare the VM with the kernel of this computer, operation by operation
    #[command(long_about = ORACLE_ABOUT)]
    #[command(after_long_help = "\
Examples:
  A sequence from a file:
    scalevm check oracle --replay steps.txt

Exit codes: 0 nothing differs, 1 something does, 2 bad usage or input, 4 a run failed,
130 interrupted.")]
    Oracle(SequencesArgs),
    /// Search for schedules that break locks, epochs or the VM
    #[command(long_about = RACES_ABOUT)]
    Races(RacesArgs),
}

/// `check conflicts`.
#[derive(Args)]
pub struct ConflictsArgs {
    /// Builds of the VM [default: all; `check conflicts` only counts for all but scalevm]
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', value_parser = preset())]
    pub vm: Vec<Preset>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// The options that `check fuzz`, `check model` and `check oracle` share.
#[derive(Args)]
pub struct SequencesArgs {
    /// Compare at least N operations [default: 100000]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000)
    )]
    pub steps: Option<u64>,
    /// Begin with this sequence [default: 0]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Number of CPUs that perform the operations, in turn
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(1..=4)
    )]
    pub tasks: u8,
    /// Give up on a sequence that takes longer, and name it
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub limit: Duration,
    /// Run the sequence in this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["steps", "seed"])]
    pub replay: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// `check fuzz`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  One seed, again:
    scalevm check fuzz --seed 7 --steps 100

Exit codes: 0 nothing differs, 1 something does, a sequence takes longer than --limit, or a planted
bug is not found, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
pub struct FuzzArgs {
    #[command(flatten)]
    pub sequences: SequencesArgs,
    /// Compare for N seconds
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000),
        conflicts_with = "replay"
    )]
    pub seconds: Option<u64>,
    /// Search for a planted bug instead, or for all of them
    #[arg(long, value_name = "NAME", value_parser = neglect(), conflicts_with = "replay")]
    pub planted: Option<String>,
}

/// `check model`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  A sequence from a file:
    scalevm check model --replay steps.txt

Exit codes: 0 nothing differs, 1 something does, or a planted bug is not found, 2 bad usage or
input, 4 a run failed, 130 interrupted.")]
pub struct ModelArgs {
    #[command(flatten)]
    pub sequences: SequencesArgs,
    /// Search for a planted bug instead, or for all of them
    #[arg(long, value_name = "NAME", value_parser = bug(), conflicts_with = "replay")]
    pub planted: Option<String>,
}

/// `check races`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Show that planted bugs are found:
    scalevm check races --planted all

Exit codes: 0 nothing fails, 1 something does, or a planted bug is not found, 2 bad usage or input,
4 a run failed, 130 interrupted.")]
pub struct RacesArgs {
    /// Try N seeds [default: 200; for a planted bug, 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seeds: Option<u64>,
    /// Begin with this seed
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = first_seed())]
    pub from: u64,
    /// Try this seed only
    #[arg(
        long,
        value_name = "S",
        conflicts_with_all = ["seeds", "from"],
        value_parser = first_seed()
    )]
    pub seed: Option<u64>,
    /// Run only these scenarios, or families of scenarios
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = scenario)]
    pub only: Vec<String>,
    /// Search for a planted bug instead, or for all of them
    #[arg(long, value_name = "NAME", value_parser = planted(), conflicts_with = "only")]
    pub planted: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Far enough from the last number that all that follow are seeds, too.
fn first_seed() -> RangedU64ValueParser {
    clap::value_parser!(u64).range(..=1 << 62)
}

fn scenario(name: &str) -> Result<String, String> {
    let names = races::names();
    if names.iter().any(|known| known == name) {
        Ok(name.to_owned())
    } else {
        Err(format!("expected one of {}", names.join(", ")))
    }
}

fn planted() -> PossibleValuesParser {
    PossibleValuesParser::new(races::planted_names().into_iter().chain(["all"]))
}

fn bug() -> PossibleValuesParser {
    PossibleValuesParser::new(sequences::bug_names().chain(["all"]))
}

fn neglect() -> PossibleValuesParser {
    PossibleValuesParser::new(sequences::neglect_names().chain(["all"]))
}

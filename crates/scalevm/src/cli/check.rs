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

Each scenario runs on small simulated machines of random shapes with random delays, once
for each seed. Watched all the time: mutual exclusion, exact limits, sections and
callbacks of epochs, contents of memory, translations used after their frames were
freed, owners of frames, lost wake-ups and other deadlocks, livelocks. The same seed gives
the same run. Exit code 1 if something fails, or a planted bug is not found.";

/// The beginning of `check conflicts --help`.
const CONFLICTS_ABOUT: &str = "\
Find cache lines that operations share although they commute

Two CPUs of a simulated machine do one operation each, after a warm-up: on memory of their own,
or on the same pages of a file, in two processes; or tasks of two sockets sleep and wake each
other, each socket's its own, under the preset's scheduler. A conflict is a line that one of them has
written and the other has touched. Exit code 1 if the default VM has one that is not listed as
known, or lacks one that is; the baselines' are only shown.";

/// The beginning of `check locks --help`.
const LOCKS_ABOUT: &str = "\
Show which locks each operation takes, and in which lines CPUs meet in it

A CPU of a simulated machine does each operation on memory of its own, after a warm-up: how often it acquires locks \
of each class. And two CPUs of two sockets do it, as two threads of a process and as two processes: the lines that \
one of them has written and the other has touched. Printed as Markdown.";

/// The beginning of `check fuzz --help`.
const FUZZ_ABOUT: &str = "\
Compare the VM with a naive model while memory is short and things fail

As `check model`, but most frames are withheld, so that pages go out and come back all the
time, and frames, and calls of the stores of files and of the swap space, fail at random. An operation
may be refused then, and must have changed nothing; in the end nothing may be lost.
A sequence says what is scarce when, so --replay fails in the same place. Exit code 1 if something
differs, a sequence takes longer than --limit, or a planted bug is not found.";

/// The beginning of `check model --help`.
const MODEL_ABOUT: &str = "\
Compare the VM with a naive model, operation by operation

Random sequences of mmap, munmap, mprotect, mremap, madvise, fork, loads, stores and so on, of
several processes and files, played one operation at a time; each on some CPU of a
machine whose TLBs are modelled. The first difference is made short and printed, as text that
--replay plays again. Exit code 1 if something differs, or a planted bug is not found.";

/// The beginning of `check oracle --help`.
const ORACLE_ABOUT: &str = "\
Compare the VM with the kernel of this computer, operation by operation

As `check model`, but real processes perform each operation, too. What the model leaves open
is not compared. A difference that the kernel does not show again is counted apart:
it may drop or move pages at any time. Exit code 1 if something differs.";

/// `check`.
#[derive(Args)]
pub struct CheckArgs {
    /// What to check
    #[command(subcommand)]
    pub what: Check,
}

/// The check.
#[derive(Subcommand)]
pub enum Check {
    /// Find cache lines that operations share although they commute
    #[command(long_about = CONFLICTS_ABOUT)]
    Conflicts(ConflictsArgs),
    /// Show which locks each operation takes, and in which lines CPUs meet in it
    #[command(long_about = LOCKS_ABOUT)]
    Locks(ConflictsArgs),
    /// Compare the VM with a naive model while memory is short and things fail
    #[command(long_about = FUZZ_ABOUT)]
    Fuzz(FuzzArgs),
    /// Compare the VM with a naive model, operation by operation
    #[command(long_about = MODEL_ABOUT)]
    Model(ModelArgs),
    /// Compare the VM with the kernel of this computer, operation by operation
    #[command(long_about = ORACLE_ABOUT)]
    Oracle(SequencesArgs),
    /// Search for schedules that break locks, epochs or the VM
    #[command(long_about = RACES_ABOUT)]
    Races(RacesArgs),
}

/// `check conflicts`.
#[derive(Args)]
pub struct ConflictsArgs {
    /// How the VM is built [default: all; `check conflicts`: the baselines in short]
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', value_parser = preset())]
    pub vm: Vec<Preset>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// The options that `check fuzz`, `check model` and `check oracle` share.
#[derive(Args)]
pub struct SequencesArgs {
    /// Compare at least N operations [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub steps: Option<u64>,
    /// Begin with this sequence [default: 0]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// CPUs that perform the operations, in turn
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=4))]
    pub tasks: u8,
    /// Give up on a sequence that takes longer, and name it
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub limit: Duration,
    /// Play the sequence in this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["steps", "seed"])]
    pub replay: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `check fuzz`.
#[derive(Args)]
pub struct FuzzArgs {
    #[command(flatten)]
    pub sequences: SequencesArgs,
    /// Compare for N seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), conflicts_with = "replay")]
    pub seconds: Option<u64>,
    /// Search a planted bug instead of the VM's, or all of them
    #[arg(long, value_name = "NAME", value_parser = neglect(), conflicts_with = "replay")]
    pub planted: Option<String>,
}

/// `check model`.
#[derive(Args)]
pub struct ModelArgs {
    #[command(flatten)]
    pub sequences: SequencesArgs,
    /// Search a planted bug instead of the VM's, or all of them
    #[arg(long, value_name = "NAME", value_parser = bug(), conflicts_with = "replay")]
    pub planted: Option<String>,
}

/// `check races`.
#[derive(Args)]
pub struct RacesArgs {
    /// Try N seeds [default: 200; 1000 of a planted bug]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seeds: Option<u64>,
    /// Begin with this seed: without it, seeds are always the same, 0 and up
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = first_seed())]
    pub from: u64,
    /// Try this seed only
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "from"], value_parser = first_seed())]
    pub seed: Option<u64>,
    /// Only these scenarios, or families of them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = scenario)]
    pub only: Vec<String>,
    /// Search a planted bug instead, or all of them
    #[arg(long, value_name = "NAME", value_parser = planted(), conflicts_with = "only")]
    pub planted: Option<String>,
    /// Print one JSON object a line
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

//! The command line of `check`.

use super::preset;
use crate::check::races;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

/// What `check races --help` begins with.
const RACES_ABOUT: &str = "\
Search for schedules that break locks, epochs or the VM

Each scenario runs on small simulated machines of random shapes with random delays, once
for each seed. Watched all the time: mutual exclusion, exact limits, sections and
callbacks of epochs, contents of memory, translations used after their frames were
freed, owners of frames, lost wake-ups and other deadlocks, livelocks. The same seed gives
the same run. Exit code 1 if something fails, or a planted bug is not found.";

/// What `check conflicts --help` begins with.
const CONFLICTS_ABOUT: &str = "\
Find cache lines that operations share although they commute

Two CPUs of a simulated machine do one operation each on memory of their own, after a
warm-up; a conflict is a line that one of them has written and the other has touched.
Exit code 1 if the default VM has one; conflicts of the baselines are known.";

/// `check`.
#[derive(Args)]
pub struct CheckArgs {
    /// What to check
    #[command(subcommand)]
    pub what: Check,
}

/// What to check.
#[derive(Subcommand)]
pub enum Check {
    /// Find cache lines that operations share although they commute
    #[command(long_about = CONFLICTS_ABOUT)]
    Conflicts(ConflictsArgs),
    /// Search for schedules that break locks, epochs or the VM
    #[command(long_about = RACES_ABOUT)]
    Races(RacesArgs),
}

/// `check conflicts`.
#[derive(Args)]
pub struct ConflictsArgs {
    /// How the VM is built [default: all; the baselines in short]
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', value_parser = preset())]
    pub vm: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `check races`.
#[derive(Args)]
pub struct RacesArgs {
    /// Try seeds 0 to N-1 [default: 200; 1000 of a planted bug]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub seeds: Option<u64>,
    /// Try this seed only
    #[arg(long, value_name = "S", conflicts_with = "seeds")]
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

fn scenario(name: &str) -> Result<String, String> {
    let names = races::names();
    match names.iter().any(|known| known == name) {
        true => Ok(name.to_owned()),
        false => Err(format!("there are: {}", names.join(", "))),
    }
}

fn planted() -> PossibleValuesParser {
    PossibleValuesParser::new(races::planted_names().into_iter().chain(["all"]))
}

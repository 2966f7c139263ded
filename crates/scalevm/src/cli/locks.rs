//! The command line of `locks`.

use super::{FormatArgs, SimArgs, seconds};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use lockbench::Group;
use lockbench::registry::ROWS;
use std::time::Duration;

/// `locks`.
#[derive(Args)]
pub struct LocksArgs {
    /// Numbers of threads that meet at one lock [default: 1,2,4,8; simulated: powers of
    /// two in a socket, then sockets, up to all CPUs]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = threads())]
    pub threads: Vec<u32>,
    /// How long each is measured alone, and with each number of threads [default: 0.3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Only these, or groups of them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = rows(), hide_possible_values = true)]
    pub only: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// How tables look.
    #[command(flatten)]
    pub format: FormatArgs,
    /// Where they are measured [default: hosted]
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<LocksOn>,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

/// Where locks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocksOn {
    /// Threads of this process
    Hosted,
    /// The simulated machine: scalevm's own locks, in virtual time
    Sim,
}

impl LocksArgs {
    /// Where to measure: as requested, or on the simulated machine if it is described.
    pub fn on(&self) -> LocksOn {
        let implied = match self.sim.machine.is_chosen() {
            true => LocksOn::Sim,
            false => LocksOn::Hosted,
        };
        self.on.unwrap_or(implied)
    }

    /// The requested numbers of threads, ascending and each once.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.threads.iter().map(|&count| count as usize).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

fn rows() -> PossibleValuesParser {
    let groups = Group::ALL.iter().map(|group| group.name());
    let rows = ROWS.iter().map(|row| row.name);
    PossibleValuesParser::new(groups.chain(rows).collect::<Vec<_>>())
}

fn threads() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=machine::MAX_CPUS as i64)
}

//! The command line of `locks`.

use super::sim::{place, rate};
use super::{FormatArgs, SimArgs, seconds};
use bench::simulated::Placement;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use lockbench::Group;
use lockbench::registry::ROWS;
use lockbench::simulated::{Load, MOST_LINES};
use std::time::Duration;

/// `locks`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  Locks on this computer:
    scalevm locks --threads 1,2,4
  On a simulated one:
    scalevm locks --machine freebsd-96

Exit codes: 0 done, 2 bad usage or input, 4 a run failed, 130 interrupted.")]
pub struct LocksArgs {
    /// Numbers of threads that contend for one lock [default: 1,2,4,8; simulated: powers of two
    /// within a socket, then whole sockets, up to all CPUs]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = threads())]
    pub threads: Vec<u32>,
    /// Length of each measurement, of one thread and of each number of threads [default: 0.3]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Measure only these, or these groups
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        value_parser = rows(),
        hide_possible_values = true
    )]
    pub only: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
    #[command(flatten)]
    pub format: FormatArgs,
    /// The system to run on [default: hosted]
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<LocksOn>,
    /// What simulated CPUs do.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub load: LoadArgs,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

/// What simulated CPUs do between locking and unlocking, and until they lock again.
#[derive(Args, Clone, Copy, Debug)]
pub struct LoadArgs {
    /// Cache lines that the critical section writes [default: 2]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=MOST_LINES as i64)
    )]
    pub lines: Option<u32>,
    /// Nanoseconds that the critical section computes [default: 40]
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    pub section: Option<f64>,
    /// Average time in nanoseconds from unlocking to locking again [default: 600]
    #[arg(long, value_name = "NS", value_parser = nanoseconds)]
    pub private: Option<f64>,
    /// Acquisitions of an operation, each with a section and time until the next [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub times: Option<u32>,
    /// Fit --private for each lock, so that one CPU makes RATE operations per second
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "private")]
    pub alone: Option<f64>,
    /// The CPUs to use: one socket after the other (`pack`), or each socket in turn (`spread`)
    /// [default: pack]
    #[arg(long, value_name = "PLACE", value_parser = place())]
    pub place: Option<Placement>,
    /// Delay accesses at random during the warm-up, so that a lock that is free only while its
    /// tasks run in step becomes contended
    #[arg(long)]
    pub disturb: bool,
}

impl LoadArgs {
    pub fn load(&self) -> Load {
        let usual = Load::default();
        Load {
            lines: self.lines.map_or(usual.lines, |lines| lines as usize),
            section: self.section.unwrap_or(usual.section),
            private: self.private.unwrap_or(usual.private),
            times: self.times.unwrap_or(usual.times),
            place: self.place.unwrap_or(usual.place),
            disturbed: self.disturb,
        }
    }

    /// The first option given.
    pub fn given(&self) -> Option<&'static str> {
        let lines = self.lines.map(|_| "--lines");
        let section = self.section.map(|_| "--section");
        let private = self.private.map(|_| "--private");
        let times = self.times.map(|_| "--times");
        let alone = self.alone.map(|_| "--alone");
        let place = self.place.map(|_| "--place");
        let disturb = self.disturb.then_some("--disturb");
        let sizes = lines.or(section).or(private).or(times).or(alone);
        sizes.or(place).or(disturb)
    }
}

/// Up to a millisecond.
fn nanoseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(time) if (0.0..=1e6).contains(&time) => Ok(time),
        _ => Err("expected nanoseconds from 0 to 1000000, e.g. 40".into()),
    }
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
        let implied = if self.sim.machine.is_chosen() {
            LocksOn::Sim
        } else {
            LocksOn::Hosted
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

//! The command line of `locks`.

use super::seconds;
use crate::locks::Group;
use crate::locks::registry::ROWS;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
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
    /// Where they are measured [default: hosted]
    #[arg(long, value_name = "SYSTEM")]
    pub on: Option<LocksOn>,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated (any of these implies --on sim)")]
    pub simulated: SimulatedArgs,
}

/// The simulated machine and its runs.
#[derive(Args)]
pub struct SimulatedArgs {
    /// Which machine (see `scalevm list`) [default: freebsd-96]
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// The machine's costs, another shape: sockets, cores a socket, threads a core
    #[arg(long, value_name = "SxCxT")]
    pub topology: Option<Shape>,
    /// Runs of each point, each with its own random numbers [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub seeds: Option<u32>,
}

/// Where locks are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LocksOn {
    /// Threads of this process
    Hosted,
    /// The simulated machine: scalevm's own locks, in virtual time
    Sim,
}

/// A machine's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sockets.
    pub sockets: usize,
    /// Cores of a socket.
    pub cores: usize,
    /// Threads of a core.
    pub threads: usize,
}

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
        match parts.as_deref() {
            Ok(&[sockets, cores, threads]) => Ok(Shape {
                sockets,
                cores,
                threads,
            }),
            _ => Err("a shape is sockets x cores x threads, as in 2x24x2".into()),
        }
    }
}

impl LocksArgs {
    /// Where to measure: as asked, or on the simulated machine if it is described.
    pub fn on(&self) -> LocksOn {
        let implied = match self.simulated.is_given() {
            true => LocksOn::Sim,
            false => LocksOn::Hosted,
        };
        self.on.unwrap_or(implied)
    }

    /// The numbers of threads asked for, ascending and each once.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.threads.iter().map(|&count| count as usize).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

impl SimulatedArgs {
    /// Whether anything is said of the simulated machine.
    pub fn is_given(&self) -> bool {
        self.machine.is_some() || self.topology.is_some() || self.seeds.is_some()
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

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn shapes_have_three_numbers() {
        let shape = Shape {
            sockets: 8,
            cores: 10,
            threads: 2,
        };
        assert_eq!("8x10x2".parse(), Ok(shape));
        for bad in ["", "8", "8x10", "8x10x2x1", "8x-1x2", "axbxc", "8 x 10 x 2"] {
            assert!(bad.parse::<Shape>().is_err(), "{bad}");
        }
    }
}

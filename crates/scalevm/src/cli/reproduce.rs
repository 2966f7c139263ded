//! The command line of `reproduce`.

use super::SimArgs;
use crate::reproduce::{SYSTEMS, System, find};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// What `reproduce --help` begins with.
pub const LONG_ABOUT: &str = "\
Repeat the seeds' experiments on simulated machines

For each: the seed's figure, ours (the median over the seeds of the simulation), the range
over the corners of what nobody publishes of a machine (how long an owner keeps a line, and
who is served next), the ratio, how far such a prediction may be off, whether it holds, and
the seconds its runs took. Then how scalevm's own design does beside what the seed ended with,
on 16, 96 and 384 CPUs. docs/seeds has a page for each seed.

Exit codes: 0 all hold, 1 something misses, 2 bad usage or input, 4 a run failed (the figures
made of it are left out), 130 interrupted.";

/// `reproduce`.
#[derive(Args)]
pub struct ReproduceArgs {
    /// Which systems [default: all]
    #[arg(value_name = "SYSTEM", value_parser = system())]
    pub systems: Vec<&'static System>,
    /// Fewer and shorter runs: within two minutes
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

fn system() -> impl TypedValueParser<Value = &'static System> {
    let names = SYSTEMS.iter();
    let names = names.map(|system| PossibleValue::new(system.name).help(system.about));
    PossibleValuesParser::new(names)
        .map(|name| find(&name).expect("the parser lets only known names through"))
}

//! The command line of `reproduce`.

use super::{FormatArgs, SimArgs};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use studies::{SYSTEMS, System, find};

/// The beginning of `reproduce --help`.
pub const LONG_ABOUT: &str = "\
Repeat the experiments of the case studies on simulated machines

For each: the published figure, ours (the median over the random seeds of the simulation), the
range over the corners, which are the extremes of a machine's unpublished properties (how long
an owner keeps a line, and which CPU gets it next), the ratio, the expected error of such a
prediction, whether it holds, and the seconds its runs took. Then scalevm's own design beside the
one that the case study ended with, on 16, 96 and 384 CPUs. docs/studies has a page for each
case study.

Exit codes: 0 all hold, 1 a figure misses, 2 bad usage or input, 4 a run failed (the figures
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
    /// How tables look.
    #[command(flatten)]
    pub format: FormatArgs,
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

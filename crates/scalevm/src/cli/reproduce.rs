//! The command line of `reproduce`.

use super::{FormatArgs, SimArgs};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use studies::{SYSTEMS, System, find};

/// The beginning of `reproduce --help`.
pub const LONG_ABOUT: &str = "\
Repeat the experiments of the case studies on simulated machines

The output has, for each figure: the published value; the simulated one (the median over the random
seeds of the simulation); its range over the extremes of the machine's unpublished properties (how
long an owner keeps a line, and which CPU gets it next); the ratio; the expected error of such a
prediction; the verdict; and the seconds its runs took. Then it compares scalevm's own design with
the one that the case study ended with, on 16, 96 and 384 CPUs. docs/studies has a page for each
case study.";

/// `reproduce`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  All case studies, in two minutes:
    scalevm reproduce --quick

Exit codes: 0 all figures hold, 1 a figure misses, 2 bad usage or input, 4 a run failed (its figures
are left out), 130 interrupted.")]
pub struct ReproduceArgs {
    /// Systems to reproduce [default: all]
    #[arg(value_name = "SYSTEM", value_parser = system())]
    pub systems: Vec<&'static System>,
    /// Make fewer and shorter runs: within two minutes
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// The format of tables.
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

//! The command line of `scaling`.

use super::SimArgs;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use workloads::Workload;

/// What `scaling --help` begins with.
pub const LONG_ABOUT: &str = "\
Tell how workloads scale on simulated machines

For each workload, by processes and by threads: its rate at each number of tasks, that over the rate of
one task, and what holds it up from where it is less than 0.9 of linear. A number of tasks that the
machine has no CPUs for is run on one with more sockets. docs/scaling.md has the whole table.";

/// `scaling`.
#[derive(Args)]
pub struct ScalingArgs {
    /// Which workloads [default: mmap1 mmap2 page_fault1 page_fault2 page_fault3 brk1 fork1 build]
    #[arg(value_name = "WORKLOAD", value_parser = workload())]
    pub workloads: Vec<&'static Workload>,
    /// Numbers of tasks
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_values_t = [1, 2, 4, 8, 16, 32, 48, 96, 384],
        value_parser = super::tasks()
    )]
    pub cpus: Vec<u32>,
    /// Processes only
    #[arg(long, conflicts_with = "threads")]
    pub processes: bool,
    /// Threads only
    #[arg(long)]
    pub threads: bool,
    /// How our VM is built
    #[arg(
        long,
        value_name = "PRESET,…",
        value_delimiter = ',',
        default_value = "scalevm",
        value_parser = super::preset()
    )]
    pub vm: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// The simulated machine.
    #[command(flatten, next_help_heading = "Simulated machine")]
    pub sim: SimArgs,
}

fn workload() -> impl TypedValueParser<Value = &'static Workload> {
    let all = workloads::all().iter();
    let names = all.map(|one| PossibleValue::new(one.name).help(one.description));
    PossibleValuesParser::new(names)
        .map(|name| workloads::find(&name).expect("the parser lets only known names through"))
}

//! The command line of `latency`.

use super::{CommonArgs, preset};
use crate::harness::Failure;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use workloads::Workload;

/// What `latency --help` begins with.
pub const LONG_ABOUT: &str = "\
Play a film beside a workload, and tell how late its frames are

The last of the tasks is a player: 60 times a second it sleeps until a frame is due, decodes it into a new buffer, \
hands it on through a pipe, and wakes whoever waits. The others run the workload. A frame that is not \
ready when the next is due is dropped. The same is played without the others first: what a frame takes \
then is not their doing, and is taken off.";

/// `latency`.
#[derive(Args)]
pub struct LatencyArgs {
    /// What the other tasks run
    #[arg(value_name = "WORKLOAD", value_parser = workload(), default_value = "build")]
    pub workload: &'static Workload,
    /// How many tasks, the player among them
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = super::tasks())]
    pub tasks: u32,
    /// How our VM is built; implies `--on hosted` if nothing else is said
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub vm: Option<String>,
    /// How many frames the film has
    #[arg(
        long,
        value_name = "N",
        default_value_t = 120,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub frames: u32,
    /// The rest.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl LatencyArgs {
    /// Refuses what other measurements take and a film does not.
    pub fn check(&self) -> Result<(), Failure> {
        let common = &self.common;
        let sampled = [
            common.samples.is_some(),
            common.warmup.is_some(),
            common.duration.is_some(),
            common.keep.store.is_some(),
            common.keep.label.is_some(),
            common.sim.seeds.is_some(),
        ];
        match sampled.contains(&true) {
            true => Err(Failure::Unavailable(
                "a film has frames, no samples: --samples, --seeds, --warmup, --duration, --store and --label do not go with it"
                    .into(),
            )),
            false => Ok(()),
        }
    }
}

fn workload() -> impl TypedValueParser<Value = &'static Workload> {
    let all = workloads::all().iter();
    let names = all.map(|one| PossibleValue::new(one.name).help(one.description));
    PossibleValuesParser::new(names)
        .map(|name| workloads::find(&name).expect("the parser lets only known names through"))
}

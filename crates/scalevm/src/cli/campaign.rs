//! The command line of `campaign`.

use campaign::Shard;
use campaign::slurm::MOST_SHARDS;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The beginning of `campaign --help`.
pub const LONG_ABOUT: &str = "\
Run many simulated runs, here or as an array job of Slurm

A plan lists the runs as tables whose arrays are axes:

    [[part]]
    command = \"run\"
    args = [\"mmap1\", \"page_fault1\"]
    vm = [\"freebsd-di\", \"scalevm\"]
    machine = \"freebsd-96\"
    tasks = [1, 48, 96]
    seed = [1, 2, 3]

Each result is a file of its own, there whole or not at all. Points without one are run; so to go on after
anything is to give the same command again. Simulated runs say the same wherever they run, so the collected
results are the same bytes however they were run. docs/campaigns.md shows a whole campaign.";

/// `campaign`.
#[derive(Subcommand)]
pub enum CampaignCommand {
    /// Run the points that have no result; if then all have one, collect them
    Run(CampaignRunArgs),
    /// Put all results into one file, in the order of the plan
    Collect(CampaignArgs),
}

/// The plan, and where its results are.
#[derive(Args)]
pub struct CampaignArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// The directory of results [default: the plan's name with .results]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// The file of collected results [default: the plan's name with .jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `campaign run`.
#[derive(Args)]
pub struct CampaignRunArgs {
    /// The plan.
    #[command(flatten)]
    pub campaign: CampaignArgs,
    /// Print the points, and how far each is, instead
    #[arg(long, conflicts_with = "engine")]
    pub list: bool,
    /// Only every Nth point from the Ith on; collects nothing
    #[arg(long, value_name = "I/N", conflicts_with = "engine")]
    pub shard: Option<Shard>,
    /// How many points run at once [default: one for each CPU]
    #[arg(long, value_name = "N", conflicts_with = "engine", value_parser = jobs())]
    pub jobs: Option<u32>,
    /// Submit the points to an engine, wait for them, and collect
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// Into how many tasks the engine's job is divided [default: one for 10 points, at most 1000]
    #[arg(long, value_name = "N", requires = "engine", value_parser = shards())]
    pub shards: Option<u32>,
    /// Options for the engine: those of sbatch
    #[arg(last = true, requires = "engine")]
    pub options: Vec<String>,
}

/// What distributes the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// An array job of Slurm; the results' directory is one that all nodes see
    Slurm,
}

fn jobs() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1024)
}

fn shards() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=MOST_SHARDS as i64)
}

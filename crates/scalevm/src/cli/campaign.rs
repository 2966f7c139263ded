//! The command line of `campaign`.

use campaign::Shard;
use campaign::slurm::MOST_SHARDS;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The beginning of `campaign --help`.
pub const LONG_ABOUT: &str = "\
Run many simulations, here or as a Slurm array job

A plan lists the runs as tables whose arrays are axes:

    [[part]]
    command = \"run\"
    args = [\"mmap1\", \"page_fault1\"]
    vm = [\"freebsd-di\", \"scalevm\"]
    machine = \"freebsd-96\"
    tasks = [1, 48, 96]
    seed = [1, 2, 3]

Each run of the plan is a point. Each result is a separate file, written whole or not at all, and
only points without a result run: to resume, repeat the command. A simulated run gives the same
result everywhere, so the collected results are the same bytes however they were run.
docs/campaigns.md shows a whole campaign.";

/// `campaign`.
#[derive(Subcommand)]
pub enum CampaignCommand {
    /// Run the points that have no result; collect the results once all points have one
    Run(CampaignRunArgs),
    /// Write all results into one file, in the order of the plan
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
    /// Print the points and their states, and run nothing
    #[arg(long, conflicts_with = "engine")]
    pub list: bool,
    /// Run only every Nth point, starting with the Ith; collect nothing
    #[arg(long, value_name = "I/N", conflicts_with = "engine")]
    pub shard: Option<Shard>,
    /// Points to run at once [default: one for each CPU]
    #[arg(long, value_name = "N", conflicts_with = "engine", value_parser = jobs())]
    pub jobs: Option<u32>,
    /// Submit the points to an engine, wait for them, and collect
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// Tasks of the engine's job [default: one for 10 points, at most 1000]
    #[arg(long, value_name = "N", requires = "engine", value_parser = shards())]
    pub shards: Option<u32>,
    /// Options for the engine: those of sbatch
    #[arg(last = true, requires = "engine")]
    pub options: Vec<String>,
}

/// What distributes the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// A Slurm array job; all nodes must see the directory of results
    Slurm,
}

fn jobs() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1024)
}

fn shards() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=MOST_SHARDS as i64)
}

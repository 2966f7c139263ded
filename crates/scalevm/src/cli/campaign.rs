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
#[command(after_long_help = "\
Examples:
  All points of a plan, here:
    scalevm campaign run plan.toml

Exit codes: 2 bad usage; otherwise those of `campaign run` and `campaign collect`.")]
pub enum CampaignCommand {
    /// Run the points that have no result; collect the results once all points have one
    Run(CampaignRunArgs),
    /// Write all results into one file, in the order of the plan
    #[command(after_long_help = "\
Examples:
  All results as one file:
    scalevm campaign collect plan.toml -o all.jsonl

Exit codes: 0 done, 1 something is broken or misses in one of the points, 2 bad usage or input.")]
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
#[command(after_long_help = "\
Examples:
  The state of a campaign:
    scalevm campaign run plan.toml --list
  The second of eight parts:
    scalevm campaign run plan.toml --shard 2/8
  An array job of Slurm, each task at most an hour:
    scalevm campaign run plan.toml --engine slurm -- --time=60

Exit codes: 0 done, 1 something is broken or misses in one of the points, 2 bad usage or input,
4 a point or the engine failed, 130 interrupted (finished results are kept).")]
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

//! The command line of `campaign`.

use super::{Cli, Command, LocksOn};
use bench::On;
use campaign::Shard;
use campaign::slurm::MOST_SHARDS;
use clap::{Args, Parser, Subcommand, ValueEnum};
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
    Collect(CampaignCollectArgs),
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

/// `campaign collect`.
#[derive(Args)]
pub struct CampaignCollectArgs {
    /// The plan.
    #[command(flatten)]
    pub campaign: CampaignArgs,
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

/// Fails if the command line of a point makes no sense, or says something else in each run.
pub fn check_point(argv: &[String]) -> Result<(), String> {
    let words = ["scalevm"]
        .into_iter()
        .chain(argv.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words).map_err(|error| first_line(&error.to_string()))?;
    let is_the_same = match &cli.command {
        Some(Command::Run(args)) => is_simulated(&args.common),
        Some(Command::Sweep(args)) => is_simulated(&args.common),
        Some(Command::Latency(args)) => is_simulated(&args.common()),
        Some(Command::Locks(args)) => args.on() == LocksOn::Sim,
        Some(Command::Scaling(_) | Command::Reproduce(_) | Command::Check(_)) => true,
        _ => return Err("no command for a campaign".into()),
    };
    match is_the_same {
        true => Ok(()),
        false => Err("only simulated runs say the same everywhere; on = \"sim\" is missing".into()),
    }
}

fn is_simulated(common: &super::CommonArgs) -> bool {
    let is_chosen = common.tasks.on.is_none() && common.sim.machine.is_chosen();
    common.tasks.on == Some(On::Sim) || is_chosen
}

fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::check_point;

    fn check(line: &str) -> Result<(), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        check_point(&words)
    }

    #[test]
    fn points_are_simulated_runs() {
        for good in [
            "run mmap1 --on=sim --tasks=2 --json",
            "run mmap1 --machine=freebsd-96 --json",
            "locks --on=sim --json",
            "scaling mmap1 --cpus=1,2 --json",
            "check races --seeds=3 --json",
            "reproduce S3 --json",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("run mmap1 --json", "only simulated"),
            (
                "run mmap1 --on=os --machine=freebsd-96 --json",
                "only simulated",
            ),
            ("run mmap1 --on=sim --taks=2 --json", "--taks"),
            ("run mmap9 --on=sim --json", "mmap9"),
            ("doctor --json", "no command for a campaign"),
            ("profile mmap1 --on=sim --json", ""),
        ] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains(why) && !said.contains('\n'), "{bad}: {said}");
        }
    }
}

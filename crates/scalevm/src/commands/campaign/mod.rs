//! `scalevm campaign`: many simulated runs.

mod point;

use crate::cli::{CampaignArgs, CampaignCommand, CampaignRunArgs, Engine};
use crate::output::campaign as output;
use crate::output::progress::Progress;
use crate::output::{file, json};
use bench::{Failure, Workers, interrupt};
use campaign::slurm::{Job, MOST_SHARDS, Queue, Slurm};
use campaign::{Error, Outcome, Plan, Results, Runner, Shard, collect, run as run_points};
use stats::Exit;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time between two checks for results of an engine's job.
const LOOK: Duration = Duration::from_secs(1);
/// The number of times that points which an engine lost, or had no time for, are submitted again
/// without a single new result.
const ATTEMPTS: usize = 3;
/// The longest time without an answer of an engine.
const SILENCE: Duration = Duration::from_secs(600);
/// Points of a shard, unless the user says how many shards there are: a task of an engine takes
/// seconds to start.
const POINTS_OF_A_SHARD: usize = 10;

/// Runs or collects.
pub fn run(command: &CampaignCommand) -> Result<u8, Failure> {
    match command {
        CampaignCommand::Run(args) => run_plan(args),
        CampaignCommand::Collect(args) => Campaign::open(args)?.collect(),
    }
}

/// A plan whose points make sense, and its results.
struct Campaign {
    plan: Plan,
    results: Results,
    out: PathBuf,
}

fn run_plan(args: &CampaignRunArgs) -> Result<u8, Failure> {
    let campaign = Campaign::open(&args.campaign)?;
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    if args.list {
        output::list(&campaign.plan, &campaign.results, shard);
        return Ok(0);
    }
    super::prepare()?;
    let outcome = match args.engine {
        None => campaign.run(shard, args.jobs)?,
        Some(Engine::Slurm) => campaign.submit(args)?,
    };
    output::print(&campaign.results, &outcome);
    match interrupt::pending() {
        Some(_) => Ok(super::finished()),
        None if !outcome.failed.is_empty() => Ok(Exit::TargetFailed.code()),
        None if args.shard.is_some() => Ok(0),
        None => campaign.collect(),
    }
}

impl Campaign {
    fn open(args: &CampaignArgs) -> Result<Self, Failure> {
        let plan = Plan::read(&args.plan).map_err(failure)?;
        for point in &plan.points {
            point::check(&point.argv).map_err(|why| {
                let path = args.plan.display();
                let line = point.argv.join(" ");
                Failure::Unavailable(format!("{path}: point {}, `{line}`: {why}", point.number))
            })?;
        }
        let beside = |end: &str| args.plan.with_extension(end);
        let directory = args.results.clone().unwrap_or_else(|| beside("results"));
        let build = json::COMMIT.unwrap_or(env!("CARGO_PKG_VERSION"));
        Ok(Campaign {
            plan,
            results: Results::new(directory, build),
            out: args.out.clone().unwrap_or_else(|| beside("jsonl")),
        })
    }

    /// Runs the points of `shard` here.
    fn run(&self, shard: Shard, jobs: Option<u32>) -> Result<Outcome, Failure> {
        let points = self.plan.points.iter();
        let points = points.filter(|point| shard.has(point.number)).count();
        let progress = Progress::new(points as u64, "points");
        let here = Workers::here(usize::MAX);
        let runner = Runner {
            plan: &self.plan,
            results: &self.results,
            program: &program()?,
            shard,
            workers: Workers {
                at_once: jobs.map_or(here.at_once, |jobs| jobs as usize),
                ..here
            },
            progress: &progress,
        };
        let outcome = run_points(&runner).map_err(failure);
        progress.finish();
        outcome
    }

    /// Has Slurm run the points, and waits: for a job that is there already, or for one made now;
    /// again for what that one did not do.
    fn submit(&self, args: &CampaignRunArgs) -> Result<Outcome, Failure> {
        let usual = self.plan.points.len().div_ceil(POINTS_OF_A_SHARD);
        let shards = args
            .shards
            .map_or(usual.min(MOST_SHARDS), |shards| shards as usize);
        let slurm = Slurm {
            plan: &self.plan,
            results: &self.results,
            program: &program()?,
            shards,
            options: &args.options,
        };
        let progress = Progress::new(self.plan.points.len() as u64, "points");
        let mut left = ATTEMPTS;
        let mut job = slurm.submitted().map_err(failure)?;
        while left > 0 && interrupt::pending().is_none() {
            let before = self.results.done(&self.plan);
            if job.is_none() {
                job = slurm.submit().map_err(failure)?;
            }
            let Some(job) = job.take() else {
                break;
            };
            self.wait(&slurm, &job, &progress)?;
            if !slurm.is_missing_some() {
                break;
            }
            if self.results.done(&self.plan) > before {
                left = ATTEMPTS
            } else {
                left -= 1
            }
        }
        progress.finish();
        Ok(output::outcome(&self.plan, &self.results))
    }

    /// Waits until a job has ended, or no point is missing.
    fn wait(&self, slurm: &Slurm<'_>, job: &Job, progress: &Progress) -> Result<(), Failure> {
        progress.point(&format!("job {job}"));
        let mut heard = Instant::now();
        while interrupt::pending().is_none() {
            progress.at(self.results.done(&self.plan) as u64);
            if !slurm.is_missing_some() {
                return Ok(());
            }
            match slurm.queue(job).map_err(failure)? {
                Queue::Ended => return Ok(()),
                Queue::Holds => heard = Instant::now(),
                Queue::Silent(said) if heard.elapsed() > SILENCE => {
                    let why = format!(
                        "squeue gives no state for job {job}, which may still be running: {said}"
                    );
                    return Err(Failure::Unavailable(why));
                }
                Queue::Silent(_) => {}
            }
            interrupt::sleep(LOOK);
        }
        eprintln!(
            "scalevm: job {job} is still running: repeat this command to wait for it; `{}` ends it",
            job.cancel()
        );
        Ok(())
    }

    fn collect(&self) -> Result<u8, Failure> {
        file::check(&self.out)?;
        let (bytes, exit) = collect(&self.plan, &self.results).map_err(failure)?;
        file::write(&self.out, &bytes)?;
        Ok(exit)
    }
}

/// This command's file.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(Failure::file(Path::new("/proc/self/exe")))
}

fn failure(error: Error) -> Failure {
    match error {
        Error::File { path, source } => Failure::File { path, source },
        Error::Engine { .. } => Failure::Broken(Box::new(error)),
        error => Failure::Unavailable(error.to_string()),
    }
}

//! Slurm as the engine: an array job of runners.
//!
//! Slurm starts a runner for each shard, and starts it again where a node is lost (`--requeue`).
//! Only the results say which points are done: Slurm may forget a job, or run a task twice.

use crate::{Error, Plan, Results, State};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// The most shards that a cluster with default settings takes: `MaxArraySize` is 1,001.
pub const MOST_SHARDS: usize = 1000;

/// The least time for which Slurm knows a job that has ended: the default `MinJobAge`. A job that
/// is younger and unknown has not ended: Slurm was asked in the wrong place, or too early.
const MEMORY: Duration = Duration::from_secs(300);

/// A job of Slurm's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    number: u32,
    /// The cluster, if that is not the one of this computer.
    cluster: Option<String>,
}

impl Job {
    /// A line of `sbatch --parsable`: `number` or `number;cluster`.
    fn parse(line: &str) -> Option<Job> {
        let (number, cluster) = match line.trim().split_once(';') {
            Some((number, cluster)) => (number, Some(cluster)),
            None => (line.trim(), None),
        };
        let is_name = |name: &str| {
            let of_names = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && name.chars().all(of_names)
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        Some(Job {
            number: number.parse().ok().filter(|_| digits)?,
            cluster: match cluster {
                Some(name) if is_name(name) => Some(name.to_owned()),
                Some(_) => return None,
                None => None,
            },
        })
    }

    /// What `sbatch` printed. A site may have it greet the user first.
    fn submitted(said: &str) -> Result<Job, Error> {
        let mut found = said.lines().filter_map(Job::parse);
        match (found.next(), found.next()) {
            (Some(job), None) => Ok(job),
            _ => Err(Error::Engine {
                program: "sbatch",
                why: format!(
                    "the number of the job is not clear from its output {said:?}; \
                     the job may be queued: see squeue, and scancel it before another try"
                ),
            }),
        }
    }

    /// The option that names its cluster to Slurm's programs.
    fn cluster_option(&self) -> Option<String> {
        let name = self.cluster.as_ref()?;
        Some(format!("--clusters={name}"))
    }

    /// Returns true if a line that `squeue` prints (`%i`) belongs to this job: `12`, `12_3` or
    /// `12_[4-7]`.
    fn is_at(&self, line: &str) -> bool {
        let rest = line.trim().strip_prefix(&self.number.to_string());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '+']))
    }

    /// The command that ends it.
    pub fn cancel(&self) -> String {
        let words = [Some("scancel".to_owned()), self.cluster_option()];
        let words: Vec<String> = words.into_iter().flatten().collect();
        format!("{} {}", words.join(" "), self.number)
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.number)?;
        let name = self.cluster.as_ref();
        name.map_or(Ok(()), |name| write!(out, ";{name}"))
    }
}

/// What Slurm says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Some of its tasks wait or run.
    Holds,
    /// It has ended.
    Ended,
    /// Not known, and why.
    Silent(String),
}

/// A campaign for Slurm.
pub struct Slurm<'a> {
    /// The points.
    pub plan: &'a Plan,
    /// Where results go: a directory that all nodes see.
    pub results: &'a Results,
    /// The command, which all nodes see.
    pub program: &'a Path,
    /// The number of shards.
    pub shards: usize,
    /// Options for `sbatch`, such as the partition and a limit of time.
    pub options: &'a [String],
}

impl Slurm<'_> {
    /// The script of a task: a runner of the shard that Slurm names. A user may also run it.
    pub fn script(&self) -> Result<String, Error> {
        let results = self.results.directory();
        let results = results.canonicalize().map_err(Error::file(results))?;
        let words = [self.program, &self.plan.path, &results].map(quoted);
        let [program, plan, results] = words;
        // The number of shards is written here: Slurm counts only the tasks of one submission.
        Ok(format!(
            "#!/bin/sh\n\
             #SBATCH --job-name=scalevm\n\
             #SBATCH --requeue\n\
             #SBATCH --output=/dev/null\n\
             exec {program} campaign run {plan} --results {results} \\\n    \
             --shard \"$((SLURM_ARRAY_TASK_ID + 1))/{}\" --jobs \"${{SLURM_CPUS_PER_TASK:-1}}\"\n",
            self.shards
        ))
    }

    /// Submits the shards that have points without a result. Returns the job, or none if all are
    /// done. Its number is stored with the results, see [`Slurm::submitted`].
    ///
    /// # Errors
    /// `sbatch` is missing or refuses, or its output has no job number.
    pub fn submit(&self) -> Result<Option<Job>, Error> {
        self.results.make()?;
        let missing = self.shards_with(|state| *state != State::Done);
        if missing.is_empty() {
            return Ok(None);
        }
        let script = self.file("slurm.sh");
        fs::write(&script, self.script()?).map_err(Error::file(&script))?;
        let mut sbatch = Command::new("sbatch");
        sbatch
            .arg("--parsable")
            .arg(format!("--array={}", ranges(&missing)));
        let output = sbatch.args(self.options).arg(&script).output();
        let job = Job::submitted(&succeeded("sbatch", output)?)?;
        let kept = self.file("slurm.job");
        fs::write(&kept, job.to_string()).map_err(Error::file(&kept))?;
        Ok(Some(job))
    }

    /// The job that was submitted last, by this process or another, if Slurm still has it.
    ///
    /// # Errors
    /// `squeue` is missing.
    pub fn submitted(&self) -> Result<Option<Job>, Error> {
        let path = self.file("slurm.job");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file(&path)(error)),
        };
        let job = Job::parse(&text).ok_or_else(|| Error::Result {
            why: format!("`{}` is not a job of Slurm", text.trim().escape_debug()),
            path,
        })?;
        Ok((self.queue(&job)? != Queue::Ended).then_some(job))
    }

    /// Asks Slurm for the tasks of a job that still wait or run.
    ///
    /// # Errors
    /// `squeue` is missing.
    pub fn queue(&self, job: &Job) -> Result<Queue, Error> {
        let output = Command::new("squeue")
            .args(job.cluster_option())
            .args([
                "--noheader",
                "--format=%i",
                "--jobs",
                &job.number.to_string(),
            ])
            .output();
        let output = output.map_err(|error| engine("squeue", &error))?;
        if output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            return Ok(if said.lines().any(|line| job.is_at(line)) {
                Queue::Holds
            } else {
                Queue::Ended
            });
        }
        // It has forgotten a job that ended long ago.
        let said = one_line(&output.stderr);
        if said.contains("Invalid job id") && self.age() >= MEMORY {
            Ok(Queue::Ended)
        } else {
            Ok(Queue::Silent(said))
        }
    }

    /// The time since a job was submitted last.
    fn age(&self) -> Duration {
        let kept = fs::metadata(self.file("slurm.job")).and_then(|kept| kept.modified());
        // Of clocks that differ, the later may be that of the file.
        let age = kept.ok().and_then(|at| at.elapsed().ok());
        age.unwrap_or_default()
    }

    /// Returns true if a point is neither done nor failed.
    pub fn is_missing_some(&self) -> bool {
        !self
            .shards_with(|state| *state == State::Missing)
            .is_empty()
    }

    /// The shards, from 0, of points of such a state.
    fn shards_with(&self, is_such: impl Fn(&State) -> bool) -> Vec<usize> {
        let is_such = |number: usize| is_such(&self.results.state(&self.plan.points[number]));
        let points = 0..self.plan.points.len();
        let of = self.shards;
        let has = |&shard: &usize| points.clone().skip(shard).step_by(of).any(is_such);
        (0..of).filter(has).collect()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.results.directory().join(name)
    }
}

/// `0-2,5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = runs.map(|run| match run {
        [only] => only.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    text.collect::<Vec<_>>().join(",")
}

/// A word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

fn succeeded(program: &'static str, output: io::Result<Output>) -> Result<String, Error> {
    let output = output.map_err(|error| engine(program, &error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Engine {
            program,
            why: match one_line(&output.stderr) {
                said if said.is_empty() => output.status.to_string(),
                said => said,
            },
        })
    }
}

/// What a program said, in one line without control characters.
fn one_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    let is_shown = |c: &char| !c.is_control();
    lines.join("; ").chars().filter(is_shown).collect()
}

fn engine(program: &'static str, error: &io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "not found; is Slurm installed?".to_owned(),
        _ => error.to_string(),
    };
    Error::Engine { program, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        assert_eq!(ranges(&[0, 1, 2, 5]), "0-2,5");
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[1, 3, 5, 6]), "1,3,5-6");
    }

    fn job(number: u32, cluster: Option<&str>) -> Job {
        let cluster = cluster.map(str::to_owned);
        Job { number, cluster }
    }

    #[test]
    fn a_job_is_found_in_what_sbatch_prints() {
        let east = job(4711, Some("east"));
        for (said, wanted) in [
            ("4711\n", job(4711, None)),
            ("4711;east\n", east.clone()),
            (
                "-----\n Welcome to Cluster 5; enjoy\n--> OK\n4711;east\n",
                east,
            ),
            ("\n  12 \n", job(12, None)),
        ] {
            let found = Job::submitted(said).expect("a job");
            assert_eq!(found, wanted, "{said:?}");
            assert_eq!(Job::parse(&found.to_string()), Some(wanted), "kept");
        }
        for said in [
            "",
            "Submitted batch job 4711\n",
            "1\n2\n",
            "4711;\n",
            "+1\n",
            "7;a b",
        ] {
            let error = Job::submitted(said).expect_err(said).to_string();
            assert!(
                error.starts_with("sbatch: the number of the job is not clear"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_jobs_lines_are_known_among_others() {
        let job = job(47, Some("east"));
        let is_at = ["47", "47_3", " 47_[0-1%2] ", "47+0"].map(|line| job.is_at(line));
        assert_eq!(is_at, [true; 4]);
        let is_at = ["471_3", "4", "CLUSTER: east", "", "a 47"].map(|line| job.is_at(line));
        assert_eq!(is_at, [false; 5]);
        assert_eq!(job.cancel(), "scancel --clusters=east 47");
    }

    #[test]
    fn shells_see_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

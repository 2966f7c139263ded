//! Slurm as the engine: an array job of runners.
//!
//! Slurm starts a runner for each shard, and starts it again where a node is lost (`--requeue`). What is done is
//! known by the results alone: Slurm may forget a job, or run a task twice.

use crate::{Error, Plan, Results, State};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// As many shards as a cluster takes that nobody has changed: `MaxArraySize` is 1,001.
pub const MOST_SHARDS: usize = 1000;

/// A campaign for Slurm.
pub struct Slurm<'a> {
    /// The points.
    pub plan: &'a Plan,
    /// Where results go: a directory that all nodes see.
    pub results: &'a Results,
    /// The command, which all nodes see.
    pub program: &'a Path,
    /// How many shards the points are dealt to.
    pub shards: usize,
    /// Options for `sbatch`, such as the partition and a limit of time.
    pub options: &'a [String],
}

impl Slurm<'_> {
    /// The script of a task: a runner of the shard that Slurm names. It may be run by hand.
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

    /// Submits the shards that have points without a result; the job's number, or none if all are done. The number is
    /// kept beside the results, see [`Slurm::submitted`].
    ///
    /// # Errors
    /// `sbatch` refuses, or is not there.
    pub fn submit(&self) -> Result<Option<String>, Error> {
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
        let said = succeeded("sbatch", output)?;
        // `number` or `number;cluster`.
        let job = said.trim().split(';').next().unwrap_or_default().to_owned();
        let kept = self.file("slurm.job");
        fs::write(&kept, &job).map_err(Error::file(&kept))?;
        Ok(Some(job))
    }

    /// The job that was submitted last, by this process or another, if Slurm still has it.
    ///
    /// # Errors
    /// As [`Slurm::is_queued`].
    pub fn submitted(&self) -> Result<Option<String>, Error> {
        let Ok(job) = fs::read_to_string(self.file("slurm.job")) else {
            return Ok(None);
        };
        Ok(self.is_queued(&job)?.unwrap_or(true).then_some(job))
    }

    /// Whether some tasks of a job still wait or run; `None` if Slurm does not answer.
    ///
    /// # Errors
    /// `squeue` is not there.
    pub fn is_queued(&self, job: &str) -> Result<Option<bool>, Error> {
        let output = Command::new("squeue")
            .args(["--noheader", "--format=%i", "--jobs", job])
            .output();
        let output = output.map_err(|error| engine("squeue", &error))?;
        if output.status.success() {
            return Ok(Some(!output.stdout.trim_ascii().is_empty()));
        }
        // It has forgotten a job that ended long ago.
        let said = String::from_utf8_lossy(&output.stderr);
        Ok(said.contains("Invalid job id").then_some(false))
    }

    /// Whether a point is neither done nor failed.
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
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(Error::Engine {
            program,
            why: text(&output.stderr).replace('\n', "; "),
        }),
    }
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

    #[test]
    fn shells_see_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

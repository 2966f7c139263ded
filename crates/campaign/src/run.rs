//! Running points on this computer, each in a process of its own.

use crate::{Error, Plan, Point, Results, Shard, State};
use bench::{JOBS, Progress, Workers};
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// Runs the points of a plan that have no result yet.
pub struct Runner<'a> {
    /// The points.
    pub plan: &'a Plan,
    /// Where results go.
    pub results: &'a Results,
    /// The command that each point gives arguments to.
    pub program: &'a Path,
    /// The runner's part of the points.
    pub shard: Shard,
    /// The number of points that run at once, and the signal to stop. A point that is under way
    /// then is killed.
    pub workers: Workers<'a>,
    /// Shows the number of points that have a result, or failed.
    pub progress: &'a dyn Progress,
}

/// The result of a runner.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of the shard's points that have a result now.
    pub done: usize,
    /// The numbers of those that failed, and why; in order.
    pub failed: Vec<(usize, String)>,
}

/// The number of runs of a point whose process is killed: by a machine short of memory, for
/// example.
const ATTEMPTS: usize = 3;

/// The time between two checks for the end of a process.
const NAP: Duration = Duration::from_millis(5);

/// The exit status and the output of a process.
struct Ended {
    status: ExitStatus,
    printed: Vec<u8>,
    said: String,
}

/// Runs what is missing in the runner's shard. A point that failed earlier runs again. Returns
/// early if the runner is told to stop; points that are under way then are killed, and leave
/// nothing.
///
/// # Errors
/// Results cannot be written, or no process can be started. A point that fails is no error.
pub fn run(runner: &Runner<'_>) -> Result<Outcome, Error> {
    runner.results.make()?;
    let mut outcome = Outcome::default();
    let points = runner.plan.points.iter();
    let points = points.filter(|point| runner.shard.has(point.number));
    let settle = |point| runner.settle(point);
    runner.workers.run(points, settle, |point, state| {
        match state? {
            State::Done => outcome.done += 1,
            State::Failed(why) => outcome.failed.push((point.number, why)),
            State::Missing => {}
        }
        Ok::<_, Error>(())
    })?;
    Ok(outcome)
}

impl Runner<'_> {
    /// Runs a point unless it is done; it is still missing if the runner was stopped.
    fn settle(&self, point: &Point) -> Result<State, Error> {
        let state = match self.results.state(point) {
            State::Done => State::Done,
            _ => self.settle_anew(point)?,
        };
        if state != State::Missing {
            self.progress.step();
        }
        Ok(state)
    }

    /// Runs a point that is not done, and keeps its result.
    fn settle_anew(&self, point: &Point) -> Result<State, Error> {
        self.results.forget(point)?;
        let mut ended = None;
        for _ in 0..ATTEMPTS {
            ended = self.attempt(point).map_err(Error::file(self.program))?;
            let is_killed = |ended: &Ended| ended.status.signal().is_some();
            if !ended.as_ref().is_some_and(is_killed) {
                break;
            }
        }
        let Some(ended) = ended else {
            return Ok(State::Missing);
        };
        // 1 is a finding: something is slower, is broken, or misses.
        if let Some(exit @ (0 | 1)) = ended.status.code() {
            self.results.keep(point, exit as u8, &ended.printed)?;
            return Ok(State::Done);
        }
        let why = format!("{}: {}", ended.status, ended.said.trim());
        self.results.fail(point, &why)?;
        Ok(State::Failed(why))
    }

    /// Runs a point to its end; `None` if it was stopped.
    fn attempt(&self, point: &Point) -> io::Result<Option<Ended>> {
        let (mut printed, mut said) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut child = Command::new(self.program)
            .args(&point.argv)
            .current_dir(self.plan.directory())
            .env(JOBS, "1")
            .stdin(Stdio::null())
            .stdout(printed.try_clone()?)
            .stderr(said.try_clone()?)
            .spawn()?;
        let Some(status) = self.wait(&mut child)? else {
            return Ok(None);
        };
        let mut ended = Ended {
            status,
            printed: Vec::new(),
            said: String::new(),
        };
        printed.rewind()?;
        printed.read_to_end(&mut ended.printed)?;
        said.rewind()?;
        let mut bytes = Vec::new();
        said.read_to_end(&mut bytes)?;
        ended.said = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(ended))
    }

    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                // The terminal's Ctrl-C reaches the process, too.
                return Ok((!(self.workers.stop)()).then_some(status));
            }
            if (self.workers.stop)() {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            thread::sleep(NAP);
        }
    }
}

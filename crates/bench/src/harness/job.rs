//! The tasks' work.

use super::{Failure, Recorded};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use workloads::{Call, Counter, Error, Feature, Frame, PLAYER, System, Workload};

/// Unit of the rates of workloads.
pub const OPERATIONS: &str = "operations/s";
/// Unit of the rates of commands.
pub const COMPLETIONS: &str = "completions/s";

/// The tasks' work: a workload that every target knows, or one of the user's own.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    Known(&'static Workload),
    /// The user's.
    Own(&'static Own),
    /// A workload, while the last task plays a film.
    Film(&'static Film),
    /// A recorded program, with this number of threads of its busiest role, or as recorded.
    Recorded(&'static Recorded, Option<usize>),
}

/// A workload of the user's own, which only kernels can run: this computer's, and in part
/// scalevm's.
#[derive(Debug)]
pub struct Own {
    /// Its name in results.
    pub name: String,
    /// Its description of itself.
    pub description: String,
    /// The C file, if there is one.
    pub source: Option<PathBuf>,
    /// The work.
    pub body: Body,
}

/// The work of a user's own workload.
#[derive(Debug)]
pub enum Body {
    /// The test case of a shared object.
    Object(PathBuf),
    /// A command, again and again.
    Command(String),
}

impl Job {
    /// The name used in results.
    pub fn name(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.name,
            Job::Film(film) => film.background.name,
            Job::Own(own) => &own.name,
            Job::Recorded(recorded, _) => &recorded.name,
        }
    }

    /// Its description of itself.
    pub fn description(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.description,
            Job::Film(film) => film.background.description,
            Job::Own(own) => &own.description,
            Job::Recorded(recorded, _) => &recorded.description,
        }
    }

    /// The counters' unit, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.unit,
            Job::Film(film) => film.background.unit,
            Job::Recorded(..) => "calls",
            Job::Own(own) => match own.body {
                Body::Object(_) => "iterations",
                Body::Command(_) => "completions",
            },
        }
    }

    /// Unit of its rates in results.
    pub fn rate_unit(self) -> &'static str {
        match self {
            Job::Own(own) if matches!(own.body, Body::Command(_)) => COMPLETIONS,
            _ => OPERATIONS,
        }
    }

    /// The workload, for targets that can run no other.
    pub fn known(self) -> Result<&'static Workload, Failure> {
        match self {
            Job::Known(workload) => Ok(workload),
            Job::Film(film) => Ok(film.background),
            Job::Recorded(recorded, threads) => Ok(recorded.workload(threads)),
            Job::Own(own) => Err(needs_os(&own.name)),
        }
    }

    /// Returns true if a task asks this of the system.
    pub fn uses(self, feature: Feature) -> bool {
        match self {
            Job::Known(workload) => workload.needs.features.contains(&feature),
            Job::Film(film) => {
                PLAYER.contains(&feature) || film.background.needs.features.contains(&feature)
            }
            Job::Recorded(..) => feature == Feature::Recording,
            Job::Own(_) => false,
        }
    }

    /// Runs the part of one task of a known workload on the task's handle of the system; `is_last`
    /// is true for the last task.
    pub fn run<S: System>(
        self,
        is_last: bool,
        system: &mut S,
        tick: &Counter,
    ) -> Result<(), Error> {
        match self {
            Job::Known(workload) => workload.run(system, tick),
            Job::Film(film) if is_last => film.play(system, tick),
            Job::Film(film) => film.background.run(system, tick),
            Job::Recorded(recorded, threads) => recorded.workload(threads).run(system, tick),
            Job::Own(_) => Err(Error::Unsupported(Call::Exec)),
        }
    }
}

/// Why a workload of the user's own, of this name, cannot run.
pub fn needs_os(name: &str) -> Failure {
    Failure::Unavailable(format!(
        "{name}: a workload of your own can run only on a kernel: --on os, or a C file with --on \
         kernel"
    ))
}

impl From<&'static Recorded> for Job {
    fn from(recorded: &'static Recorded) -> Self {
        Job::Recorded(recorded, None)
    }
}

impl From<&'static Film> for Job {
    fn from(film: &'static Film) -> Self {
        Job::Film(film)
    }
}

impl From<&'static Workload> for Job {
    fn from(workload: &'static Workload) -> Self {
        Job::Known(workload)
    }
}

/// A film that the last task of a run plays while the others run a workload.
#[derive(Debug)]
pub struct Film {
    /// The others' workload.
    pub background: &'static Workload,
    /// The number of frames.
    length: usize,
    /// The fates of the frames that were due. Has room for all: a simulated CPU must not allocate
    /// memory that outlives its machine.
    frames: Mutex<Vec<Frame>>,
}

impl Film {
    /// A film of `length` frames. It stays as long as the process, as jobs do.
    pub fn new(background: &'static Workload, length: usize) -> &'static Self {
        Box::leak(Box::new(Film {
            background,
            length,
            frames: Mutex::new(Vec::with_capacity(length)),
        }))
    }

    /// Plays it to its end, or until `tick` says stop.
    pub fn play<S: System>(&self, system: &mut S, tick: &Counter) -> Result<(), Error> {
        workloads::play(system, |frame| {
            let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            frames.push(frame);
            tick.add(1) && frames.len() < self.length
        })
    }

    /// Returns true if each frame has been shown or skipped.
    pub fn is_over(&self) -> bool {
        self.frames().len() >= self.length
    }

    /// The fates of the frames so far.
    pub fn frames(&self) -> Vec<Frame> {
        let frames = self.frames.lock();
        frames.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

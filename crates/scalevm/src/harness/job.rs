//! What the tasks do.

use super::{Failure, Film};
use std::path::PathBuf;
use workloads::{Call, Counter, Error, Feature, PLAYER, System, Workload};

/// What the tasks do: a workload that every target knows, or one of the user's own.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// One of [`workloads::all`].
    Known(&'static Workload),
    /// The user's.
    Own(&'static Own),
    /// A workload, while the last task plays a film.
    Film(&'static Film),
}

/// A workload of the user's own, which only the kernel of this computer can run.
#[derive(Debug)]
pub struct Own {
    /// What it is called in results.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// What is done.
    pub body: Body,
}

/// What an own workload does.
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
        }
    }

    /// What it says of itself.
    pub fn description(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.description,
            Job::Film(film) => film.background.description,
            Job::Own(own) => &own.description,
        }
    }

    /// What the counters count, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.unit,
            Job::Film(film) => film.background.unit,
            Job::Own(own) => match own.body {
                Body::Object(_) => "iterations",
                Body::Command(_) => "completions",
            },
        }
    }

    /// The workload, for those who can run no other.
    pub fn known(self) -> Result<&'static Workload, Failure> {
        match self {
            Job::Known(workload) => Ok(workload),
            Job::Film(film) => Ok(film.background),
            Job::Own(own) => Err(needs_os(&own.name)),
        }
    }

    /// Whether a task asks this of the system.
    pub fn uses(self, feature: Feature) -> bool {
        match self {
            Job::Known(workload) => workload.needs.features.contains(&feature),
            Job::Film(film) => {
                PLAYER.contains(&feature) || film.background.needs.features.contains(&feature)
            }
            Job::Own(_) => false,
        }
    }

    /// Does what one of the tasks does that run a known workload, on its handle of the system; `is_last` says
    /// whether it is the last of them.
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
            Job::Own(_) => Err(Error::Unsupported(Call::Exec)),
        }
    }
}

/// Why a workload of the user's own, of this name, can not run.
pub fn needs_os(name: &str) -> Failure {
    Failure::Unavailable(format!(
        "{name}: a workload of your own runs on this computer's kernel only, --on os"
    ))
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

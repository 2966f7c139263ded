//! What the tasks do.

use super::Failure;
use std::path::PathBuf;
use workloads::Workload;

/// What the tasks do: a workload that every target knows, or one of the user's own.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// One of [`workloads::all`].
    Known(&'static Workload),
    /// The user's.
    Own(&'static Own),
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
            Job::Own(own) => &own.name,
        }
    }

    /// What it says of itself.
    pub fn description(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.description,
            Job::Own(own) => &own.description,
        }
    }

    /// What the counters count, in the plural.
    pub fn unit(self) -> &'static str {
        match self {
            Job::Known(workload) => workload.unit,
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
            Job::Own(own) => Err(needs_os(&own.name)),
        }
    }
}

/// Why a workload of the user's own, of this name, can not run.
pub fn needs_os(name: &str) -> Failure {
    Failure::Unavailable(format!(
        "{name}: a workload of your own runs on this computer's kernel only, --on os"
    ))
}

impl From<&'static Workload> for Job {
    fn from(workload: &'static Workload) -> Self {
        Job::Known(workload)
    }
}

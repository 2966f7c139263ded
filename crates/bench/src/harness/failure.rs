//! The reason why there is no measurement.

use stats::InputError;
use stats::record::Mode;
use stats::store::StoreError;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use workloads::{Call, Error};

/// The reason why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The target cannot run this workload; another choice would help.
    #[error("{0}")]
    Unavailable(String),
    /// A simulated machine does not reach a measured rate, so nothing can be said about others.
    #[error("not fitted: {0}")]
    NotFitted(String),
    /// A file cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Recording the tasks failed.
    #[cfg(feature = "ours")]
    #[error(transparent)]
    Recording(perf::Error),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A command under test did not succeed.
    #[error("`{command}`: {status}")]
    Command {
        /// The command, as given.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The tasks could not be started.
    #[error("{what}: {source}")]
    Start {
        /// The attempt.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A call of the workload failed.
    #[error("{workload}: task {task}: {}", explained(error))]
    Task {
        workload: &'static str,
        /// Which task, from 0.
        task: usize,
        /// The error.
        #[source]
        error: Error,
    },
    /// A task ended on its own.
    #[error("{workload}: task {task} ended on its own{}", ended(status))]
    Died {
        workload: &'static str,
        /// Which task, from 0.
        task: usize,
        /// How, if it was a process.
        status: Option<ExitStatus>,
    },
    /// A user's own workload misbehaves.
    #[error("{}: {why}", named(workload, task))]
    Own {
        workload: &'static str,
        /// Which task, from 0, if it was one.
        task: Option<usize>,
        /// The reason.
        why: String,
    },
    /// The user did not want to wait for the beginning.
    #[error("interrupted")]
    Interrupted(u8),
    /// A simulated run came to no end.
    #[error("{workload}: {why}")]
    Simulation {
        workload: &'static str,
        /// The evidence.
        why: String,
    },
    /// A guest has ended, or does not make sense.
    #[error("{workload}: {why}")]
    Guest {
        workload: &'static str,
        /// The evidence.
        why: String,
    },
    /// There is no measurement in a guest, as it says itself.
    #[error("{0}")]
    InGuest(String),
    /// A system under test cannot be used any more.
    #[error(transparent)]
    Broken(Box<dyn std::error::Error + Send + Sync>),
    /// A measured subject does not work.
    #[error("{name} does not work ({}): {why}", Mode::Threads.count(*threads))]
    Wrong {
        name: &'static str,
        /// With how many threads.
        threads: usize,
        /// The evidence.
        why: String,
    },
}

impl Failure {
    /// Names the step that failed.
    pub fn start(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
        move |source| Failure::Start { what, source }
    }

    /// Names the file that cannot be written.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        move |source| Failure::File {
            path: path.to_owned(),
            source,
        }
    }

    /// Names the recording that cannot be read or written.
    pub fn recording(path: &Path) -> impl FnOnce(recording::Error) -> Failure {
        move |error| Failure::Unavailable(format!("{}: {error}", path.display()))
    }
}

#[cfg(feature = "ours")]
impl From<guests::Error> for Failure {
    fn from(error: guests::Error) -> Self {
        match error {
            guests::Error::Io { path, source } => Failure::File { path, source },
            error if error.is_input() => Failure::Unavailable(error.to_string()),
            error => Failure::Broken(Box::new(error)),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Input(InputError::Unreadable {
            file: error.path.display().to_string(),
            source: error.source,
        })
    }
}

/// The message of a task's `error`, with the files' place if it concerns one.
fn explained(error: &Error) -> String {
    let Error::Failed(call, errno) = *error else {
        return error.to_string();
    };
    let cause = io::Error::from_raw_os_error(errno);
    let text = format!("{}: {cause}", call.name());
    match call {
        Call::File => format!(
            "{text} (in {}, from TMPDIR)",
            std::env::temp_dir().display()
        ),
        _ => text,
    }
}

/// How a task ended, if it was a process.
fn ended(status: &Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return String::new();
    };
    match status.signal() {
        Some(libc::SIGBUS) => format!(": {status}; is the file system of TMPDIR full?"),
        _ => format!(": {status}"),
    }
}

/// A workload, and which task of it if it was one.
fn named(workload: &str, task: &Option<usize>) -> String {
    match task {
        Some(task) => format!("{workload}: task {task}"),
        None => workload.to_owned(),
    }
}

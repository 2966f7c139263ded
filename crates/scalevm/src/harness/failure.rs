//! Why there is no measurement.

use stats::store::StoreError;
use stats::{Exit, InputError};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::{fmt, io};
use workloads::{Call, Error};

/// Why there is no measurement.
#[derive(Debug)]
pub enum Failure {
    /// The target can not run this; another choice would help.
    Unavailable(String),
    /// A file can not be used.
    Input(InputError),
    /// What the tasks do can not be recorded.
    Recording(perf::Error),
    /// A file can not be written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A command under test did not succeed.
    Command {
        /// The command, as given.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The tasks could not be started.
    Start {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A call of the workload failed.
    Task {
        /// The workload.
        workload: &'static str,
        /// Which task, from 0.
        task: usize,
        /// What failed.
        error: Error,
    },
    /// A task ended on its own.
    Died {
        /// The workload.
        workload: &'static str,
        /// Which task, from 0.
        task: usize,
        /// How, if it was a process.
        status: Option<ExitStatus>,
    },
    /// A workload of the user's own does not do what it should.
    Own {
        /// The workload.
        workload: &'static str,
        /// Which task, from 0, if it was one.
        task: Option<usize>,
        /// What happened.
        why: String,
    },
    /// The user did not want to wait for the beginning.
    Interrupted(u8),
    /// A simulated run came to no end.
    Simulation {
        /// The workload.
        workload: &'static str,
        /// How one can tell.
        why: String,
    },
    /// A system that sequences are played on can not be used any more.
    Sequences(oracle::Broken),
    /// What was measured does not work.
    Wrong {
        /// What was measured.
        name: &'static str,
        /// With how many threads.
        threads: usize,
        /// How one can tell.
        why: String,
    },
}

impl Failure {
    /// Names the step that failed.
    pub fn start(what: &'static str) -> impl FnOnce(io::Error) -> Failure {
        move |source| Failure::Start { what, source }
    }

    /// Names the file that can not be written.
    pub fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        move |source| Failure::File {
            path: path.to_owned(),
            source,
        }
    }

    /// The exit code of the command: 2 for a bad choice, 4 for a failed target.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Unavailable(_) | Failure::Input(_) | Failure::File { .. } => {
                Exit::BadInput.code()
            }
            Failure::Interrupted(signal) => 128 + signal,
            _ => Exit::TargetFailed.code(),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Failure::Input(error)
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unavailable(why) => f.write_str(why),
            Failure::Input(error) => error.fmt(f),
            Failure::Recording(error) => error.fmt(f),
            Failure::File { path, source } => write!(f, "{}: {source}", path.display()),
            Failure::Command { command, status } => write!(f, "`{command}`: {status}"),
            Failure::Start { what, source } => write!(f, "{what}: {source}"),
            Failure::Task {
                workload,
                task,
                error,
            } => {
                write!(f, "{workload}: task {task}: ")?;
                match *error {
                    Error::Failed(call, errno) => {
                        let cause = io::Error::from_raw_os_error(errno);
                        write!(f, "{}: {cause}", call.name())?;
                        if call == Call::File {
                            let directory = std::env::temp_dir();
                            write!(f, " (in {}, from TMPDIR)", directory.display())?;
                        }
                        Ok(())
                    }
                    other => other.fmt(f),
                }
            }
            Failure::Died {
                workload,
                task,
                status,
            } => {
                write!(f, "{workload}: task {task} ended on its own")?;
                let Some(status) = status else { return Ok(()) };
                write!(f, ": {status}")?;
                if status.signal() == Some(libc::SIGBUS) {
                    f.write_str("; is the file system of TMPDIR full?")?;
                }
                Ok(())
            }
            Failure::Own {
                workload,
                task,
                why,
            } => match task {
                Some(task) => write!(f, "{workload}: task {task}: {why}"),
                None => write!(f, "{workload}: {why}"),
            },
            Failure::Interrupted(_) => f.write_str("interrupted"),
            Failure::Sequences(error) => error.fmt(f),
            Failure::Simulation { workload, why } => write!(f, "{workload}: {why}"),
            Failure::Wrong { name, threads, why } => {
                let noun = if *threads == 1 { "thread" } else { "threads" };
                write!(f, "{name} does not work ({threads} {noun}): {why}")
            }
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Start { source, .. } | Failure::File { source, .. } => Some(source),
            Failure::Task { error, .. } => Some(error),
            // Their texts are this one's, so their causes are too.
            Failure::Recording(error) => error.source(),
            Failure::Sequences(error) => error.source(),
            Failure::Input(error) => error.source(),
            Failure::Unavailable(_)
            | Failure::Died { .. }
            | Failure::Command { .. }
            | Failure::Own { .. }
            | Failure::Interrupted(_)
            | Failure::Simulation { .. }
            | Failure::Wrong { .. } => None,
        }
    }
}

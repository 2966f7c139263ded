//! Errors of recording.

use std::io;
use std::path::PathBuf;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses to sample even this user's own processes.
    #[error(
        "nothing can be sampled here: perf_event_open is refused; {}",
        crate::support::remedy("sysctl kernel.perf_event_paranoid=2")
    )]
    Refused(#[source] io::Error),
    /// The kernel refuses to trace memory operations, or cannot.
    #[error(
        "memory operations cannot be traced here ({source}); {how}, and the kernel must have \
             tracefs and the tracepoints of system calls and page faults"
    )]
    Untraced {
        /// How to be allowed it.
        how: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// /proc is missing, or speaks of other processes.
    #[error("recording needs /proc")]
    Proc(#[source] io::Error),
    /// The processes ran where or when nothing was recorded, so the recording says nothing of them.
    #[error(
        "only {recorded:.2} s of the {used:.2} s of CPU time that the processes used were \
         recorded: there may be CPUs that are hidden here, or the sampling clock does not tick"
    )]
    Unseen {
        /// Seconds of CPU time that were recorded.
        recorded: f64,
        /// Seconds of CPU time by the processes' own clocks.
        used: f64,
    },
    /// Options out of range.
    #[error("recording: {0}")]
    Options(&'static str),
    /// A process to watch does not exist.
    #[error("process {0}: no such process")]
    NoProcess(u32),
    /// There is no such control group.
    #[error("cgroup {}: no such control group", stats::printable(&.0.to_string_lossy()))]
    NoGroup(PathBuf),
    /// Several control groups have this name.
    #[error("cgroup {0}: there are several: {1}; give the path of one")]
    Groups(String, String),
    /// A control group has no process.
    #[error("cgroup {0}: it has no process to watch")]
    EmptyGroup(String),
    /// The kernel refuses to sample these processes.
    #[error(
        "{whom}: other users' processes cannot be sampled; {}",
        crate::support::remedy(crate::support::ALLOWS_ALL)
    )]
    Denied {
        /// The processes.
        whom: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A system call failed that should work.
    #[error("recording: {what}")]
    System {
        /// Its purpose.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Written(#[from] recording::Error),
    /// The thread that reads the rings has panicked.
    #[error("recording: the reader has panicked")]
    Reader,
}

impl Error {
    /// Returns true if other processes, or more rights, would help.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Error::NoProcess(_)
                | Error::NoGroup(_)
                | Error::Groups(..)
                | Error::EmptyGroup(_)
                | Error::Denied { .. }
        )
    }

    /// For `map_err`: names the failed call.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}

//! Errors of recording.

use std::io;

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
    /// A system call failed that should work.
    #[error("recording: {what}")]
    System {
        /// Its purpose.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The thread that reads the rings has panicked.
    #[error("recording: the reader has panicked")]
    Reader,
}

impl Error {
    /// For `map_err`: names the failed call.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}

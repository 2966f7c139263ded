//! Errors of recording.

use std::io;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses to sample even this user's own processes.
    #[error(
        "nothing can be sampled here: perf_event_open is refused; \
         run as root, or sysctl kernel.perf_event_paranoid=2; a container must be allowed the call"
    )]
    Refused(#[source] io::Error),
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

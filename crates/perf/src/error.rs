//! Why there is no recording.

use std::io;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not even let own processes be sampled.
    #[error(
        "nothing can be sampled here: perf_event_open is refused; \
         run as root, or sysctl kernel.perf_event_paranoid=2; a container must be allowed the call"
    )]
    Refused(#[source] io::Error),
    /// Options that mean nothing.
    #[error("recording: {0}")]
    Options(&'static str),
    /// A process to watch is not there.
    #[error("process {0}: there is none")]
    NoProcess(u32),
    /// A step that should work did not.
    #[error("recording: {what}")]
    System {
        /// The step.
        what: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The thread that reads the rings has died.
    #[error("recording: the reader has panicked")]
    Reader,
}

impl Error {
    /// For `map_err`: `what` failed.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
}

//! Systems that perform steps.

use crate::outcome::Outcome;
use crate::step::Step;
use std::io;

/// A virtual-memory system that performs sequences.
///
/// After [`System::reset`], process 0 exists without mappings, and the files are empty. Steps come
/// one at a time.
pub trait System {
    /// The name in reports.
    fn name(&self) -> &str;

    /// The features that it does not support, described for reports.
    fn lacks(&self) -> &[&'static str] {
        &[]
    }

    /// Returns true if it supports the operation. Steps that some system does not support are left
    /// out.
    fn supports(&self, _step: &Step) -> bool {
        true
    }

    /// Returns true if it may refuse steps ([`Outcome::Refused`]), or do only part of a transfer.
    fn may_refuse(&self) -> bool {
        false
    }

    /// The effects of its calls that fail half-way.
    fn halfway(&self) -> Halfway {
        Halfway::Kept
    }

    /// Starts a sequence: drops all processes and the contents of files.
    ///
    /// # Errors
    /// If the system cannot be used any more.
    fn reset(&mut self) -> Result<(), Broken>;

    /// Performs a step. The process is alive; the step's handles were made by it or its ancestors,
    /// and are still mapped where the step needs them.
    ///
    /// # Errors
    /// The system cannot be used any more. A failure of the step itself is an outcome.
    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken>;

    /// Ends a sequence with all its processes. Returns the error found then, if any.
    ///
    /// # Errors
    /// If the system cannot be used any more.
    fn finish(&mut self) -> Result<Option<String>, Broken> {
        Ok(None)
    }
}

/// The effects of a call on a range that fails in the middle, such as `mprotect` at a hole. POSIX
/// leaves that open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halfway {
    /// The changes up to then are kept, as on Linux.
    Kept,
    /// The changes are undone.
    Undone,
}

/// Why a system cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A system call of the host failed.
    #[error("{what}: {source}")]
    Host {
        /// The attempt.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A process does not answer.
    #[error("process {process} does not respond to `{step}`")]
    Silent {
        /// The process's number in the sequence.
        process: u8,
        /// The step in progress.
        step: String,
    },
    /// The system has found an error in itself.
    #[error("{0}")]
    Own(String),
}

impl Broken {
    /// Names the call that failed.
    pub fn host(what: &'static str) -> impl FnOnce(io::Error) -> Broken {
        move |source| Broken::Host { what, source }
    }
}

//! What steps are performed on.

use crate::outcome::Outcome;
use crate::step::Step;
use std::io;

/// A virtual-memory system that performs sequences.
///
/// Between [`System::reset`] and the next one, process 0 is there from the start and has
/// nothing mapped; the files are empty. Steps come one at a time.
pub trait System {
    /// What reports call it.
    fn name(&self) -> &str;

    /// What it does not know, in words.
    fn lacks(&self) -> &[&'static str] {
        &[]
    }

    /// Whether it knows the operation. Steps that some system does not know are left out.
    fn supports(&self, _step: &Step) -> bool {
        true
    }

    /// Whether it may refuse steps ([`Outcome::Refused`]), or do a part of a transfer only.
    fn may_refuse(&self) -> bool {
        false
    }

    /// What its calls leave behind when they fail half-way.
    fn halfway(&self) -> Halfway {
        Halfway::Kept
    }

    /// Begins a sequence: forgets all processes and what the files hold.
    ///
    /// # Errors
    /// The system can not be used any more.
    fn reset(&mut self) -> Result<(), Broken>;

    /// Performs a step. The process is alive; handles that the step names have been made by it or its
    /// ancestors, and are still mapped where the step needs them.
    ///
    /// # Errors
    /// The system can not be used any more. What the step itself leads to is an outcome.
    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken>;

    /// Ends a sequence: all processes, wherever they are. What is found wrong then, if anything.
    ///
    /// # Errors
    /// The system can not be used any more.
    fn finish(&mut self) -> Result<Option<String>, Broken> {
        Ok(None)
    }
}

/// What a call on a range leaves behind if it fails in the midst of it, as `mprotect` at a hole. POSIX
/// leaves that open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halfway {
    /// What was done by then, as on Linux.
    Kept,
    /// Nothing.
    Undone,
}

/// Why a system can not be used any more.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A call of the host's failed.
    #[error("{what}: {source}")]
    Host {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A process of the system does not answer.
    #[error("process {process} does not answer to `{step}`")]
    Silent {
        /// Which, as the sequence numbers them.
        process: u8,
        /// What it was asked.
        step: String,
    },
    /// The system has noticed that something is wrong with itself.
    #[error("{0}")]
    Own(String),
}

impl Broken {
    /// Names the call that failed.
    pub fn host(what: &'static str) -> impl FnOnce(io::Error) -> Broken {
        move |source| Broken::Host { what, source }
    }
}

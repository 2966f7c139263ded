//! The tasks' time, broken down.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a breakdown has a row for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A system call, a kind of fault, or work outside of the kernel, with the user function that
    /// it is done for.
    Call,
    /// A user function with all that it calls: the rows overlap.
    Function,
    /// Threads of one name in processes of one name.
    Thread,
    /// Processes of one name.
    Process,
    /// A CPU, which knows busy time only.
    Cpu,
}

impl By {
    /// All, in the order of the help.
    pub const ALL: [By; 5] = [By::Call, By::Function, By::Thread, By::Process, By::Cpu];

    /// The word on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            By::Call => "call",
            By::Function => "function",
            By::Thread => "thread",
            By::Process => "process",
            By::Cpu => "cpu",
        }
    }
}

/// A row of a breakdown. Seconds are of task time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    /// Seconds on a CPU.
    pub busy: f64,
    /// Seconds off CPU with something to do: for a lock, a CPU, or a device.
    pub waits: f64,
    /// Seconds without anything to do.
    pub idle: f64,
}

/// The breakdowns, each with the row that took the most active time first.
pub type Parts = BTreeMap<By, Vec<Part>>;

impl Part {
    /// Seconds in which the tasks were not idle.
    pub fn active(&self) -> f64 {
        self.busy + self.waits
    }
}

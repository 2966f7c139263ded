//! What a thread did.

use serde::{Deserialize, Serialize};

/// A thread, and what it did in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The number of its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// The command of its process.
    pub process: String,
    /// Its own name.
    pub name: String,
    /// Seconds on a CPU.
    pub busy: f64,
    /// What it waited for off its CPU, the longest first.
    pub waits: Vec<Wait>,
}

impl Thread {
    /// Seconds in which it waited though it had something to do.
    pub fn held_up(&self) -> f64 {
        let waits = self.waits.iter().filter(|wait| !wait.idle);
        // The sum of nothing would be -0.
        waits.fold(0.0, |sum, wait| sum + wait.seconds)
    }

    /// Seconds in which it had something to do.
    pub fn active(&self) -> f64 {
        self.busy + self.held_up()
    }
}

/// Time that was spent waiting for one thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// A lock, `a CPU`, or the function of the kernel in which the thread slept.
    pub what: String,
    /// Seconds.
    pub seconds: f64,
    /// True if the thread had nothing to do: it waited neither for a lock, nor for a CPU or another
    /// device.
    pub idle: bool,
}

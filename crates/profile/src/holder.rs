//! A thread that held a lock while tasks waited for it.

use crate::{Kind, Spread};
use serde::{Deserialize, Serialize};

/// What one function of a process held while tasks waited for it. Seconds are of task time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The name of the lock (`mmap_lock`).
    pub lock: String,
    /// The command of the process that held it.
    pub process: String,
    /// The thread's name, if it has one of its own.
    #[serde(default)]
    pub thread: Option<String>,
    /// True if that process is one of the watched.
    pub watched: bool,
    /// The function that ran with the lock.
    pub function: String,
    /// The lock's kind, and the mode in which it was held.
    pub kind: Kind,
    /// The number of holds that a task waited for; holds without a waiter do not count.
    pub holds: u64,
    /// How long the holds lasted; nothing where only their ends were seen, because the thread woke
    /// one that waited.
    #[serde(flatten)]
    pub times: Option<Times>,
    /// How long the tasks that it woke then waited for a CPU, where only such ends were seen.
    #[serde(default)]
    pub queued: Option<Spread>,
    /// Seconds that tasks waited for the lock during the holds.
    pub waited: f64,
    /// The part of all waiting for the lock that fell into the holds. Several readers may hold it
    /// at a time, so the parts may add up to more than 1.
    pub share: f64,
}

impl Holder {
    /// The process, with the thread if that has a name of its own.
    pub fn place(&self) -> String {
        match &self.thread {
            Some(thread) => format!("{}/{thread}", self.process),
            None => self.process.clone(),
        }
    }
}

/// How long holds lasted, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// All together.
    pub total: f64,
    pub mean: f64,
    /// The time that 99 % do not exceed.
    pub p99: f64,
    /// The longest.
    pub worst: f64,
}

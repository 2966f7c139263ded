//! A thread that held a lock while tasks waited for it.

use crate::Kind;
use serde::{Deserialize, Serialize};

/// What one function of a process held while tasks waited for it. Seconds are of task time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// The name of the lock (`mmap_lock`).
    pub lock: String,
    /// The command of the process that held it.
    pub process: String,
    /// True if that process is one of the watched.
    pub watched: bool,
    /// The function that ran with the lock.
    pub function: String,
    /// The lock's kind, and the mode in which it was held.
    pub kind: Kind,
    /// The number of holds that a task waited for; holds without a waiter do not count.
    pub holds: u64,
    /// Seconds of all these holds.
    pub total: f64,
    /// Seconds of the average hold.
    pub mean: f64,
    /// Seconds that 99 % of the holds do not exceed.
    pub p99: f64,
    /// Seconds of the longest hold.
    pub worst: f64,
    /// Seconds that tasks waited for the lock during the holds.
    pub waited: f64,
    /// The part of all waiting for the lock that fell into the holds. Several readers may hold it
    /// at a time, so the parts may add up to more than 1.
    pub share: f64,
}

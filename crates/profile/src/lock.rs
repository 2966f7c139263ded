//! A lock that was waited for.

use crate::Spread;
use serde::{Deserialize, Serialize};

/// A lock's kind, and the mode in which it was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A kernel spin lock.
    #[serde(rename = "spinlock")]
    Spinlock,
    /// A kernel spinning readers-writer lock, for reading.
    #[serde(rename = "rwlock read")]
    RwlockRead,
    /// A kernel spinning readers-writer lock, for writing.
    #[serde(rename = "rwlock write")]
    RwlockWrite,
    /// A kernel mutex.
    #[serde(rename = "mutex")]
    Mutex,
    /// A kernel readers-writer semaphore, for reading.
    #[serde(rename = "rwsem read")]
    RwsemRead,
    /// A kernel readers-writer semaphore, for writing.
    #[serde(rename = "rwsem write")]
    RwsemWrite,
    /// A kernel per-CPU readers-writer semaphore.
    #[serde(rename = "percpu rwsem")]
    PercpuRwsem,
    /// A lock of a program, waited for in the kernel.
    #[serde(rename = "futex")]
    Futex,
    /// A spin lock of a program.
    #[serde(rename = "user spinlock")]
    UserSpin,
    /// A lock of scalevm's own VM.
    #[serde(rename = "lock")]
    Own,
    /// A cache line that simulated CPUs wait for.
    #[serde(rename = "line")]
    Line,
}

impl Kind {
    /// The word used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Spinlock => "spinlock",
            Kind::RwlockRead => "rwlock read",
            Kind::RwlockWrite => "rwlock write",
            Kind::Mutex => "mutex",
            Kind::RwsemRead => "rwsem read",
            Kind::RwsemWrite => "rwsem write",
            Kind::PercpuRwsem => "percpu rwsem",
            Kind::Futex => "futex",
            Kind::UserSpin => "user spinlock",
            Kind::Own => "lock",
            Kind::Line => "line",
        }
    }

    /// ` for writing` and the like; empty where there is one mode only.
    pub const fn purpose(self) -> &'static str {
        match self {
            Kind::RwlockRead | Kind::RwsemRead => " for reading",
            Kind::RwlockWrite | Kind::RwsemWrite => " for writing",
            _ => "",
        }
    }
}

/// A lock at one caller, and the cost of waiting for it. Seconds are of task time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// Its name (`mmap_lock`), or `unknown lock`.
    pub name: String,
    /// The lock's kind.
    pub kind: Kind,
    /// The function that wanted it, or `file:line`.
    pub caller: String,
    /// How often it was acquired; `null` where only waits are seen.
    pub acquisitions: Option<u64>,
    /// The number of acquisitions that had to wait.
    pub contentions: u64,
    /// The number of waits that had not ended by the end.
    #[serde(default, skip_serializing_if = "is_none")]
    pub open: u64,
    /// Seconds of all waits.
    pub wait: f64,
    /// Seconds of the average wait.
    pub mean: f64,
    /// Seconds of the longest wait.
    pub worst: f64,
    /// How the waits are distributed, where that was recorded.
    #[serde(default)]
    pub spread: Option<Spread>,
    /// The parts of these waits in which a task had been woken and waited for a CPU, where wake-ups
    /// were recorded.
    #[serde(default)]
    pub queued: Option<Spread>,
    /// Seconds of spinning that samples saw outside the waits above.
    pub spin: f64,
    /// The share of the tasks' time that waits and spinning took.
    pub share: f64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Lock {
    /// A lock at `caller` without waits.
    pub fn new(name: &str, kind: Kind, caller: &str) -> Self {
        Lock {
            name: name.to_owned(),
            kind,
            caller: caller.to_owned(),
            acquisitions: None,
            contentions: 0,
            open: 0,
            wait: 0.0,
            mean: 0.0,
            worst: 0.0,
            spread: None,
            queued: None,
            spin: 0.0,
            share: 0.0,
        }
    }

    /// Adds `count` waits of `seconds` in all, the longest `worst`.
    pub fn add_waits(&mut self, count: u64, seconds: f64, worst: f64) {
        self.contentions += count;
        self.wait += seconds;
        self.mean = self.wait / self.contentions.max(1) as f64;
        self.worst = self.worst.max(worst);
    }

    /// Seconds that 99 % of the waits do not exceed, where that was recorded.
    pub fn p99(&self) -> Option<f64> {
        self.spread.as_ref().map(|spread| spread.p99)
    }

    /// Sets the share, for tasks that had `task_seconds` together.
    pub fn share_of(mut self, task_seconds: f64) -> Self {
        self.share = (self.wait + self.spin) / task_seconds;
        self
    }
}

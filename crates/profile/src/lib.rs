//! Where the tasks' time went, on any system.
//!
//! A [`Profile`] describes a run of a workload, or processes that already ran: stacks that were
//! busy, stacks that waited, and the locks waited for. The kernel's samples, the lock profile of
//! scalevm's own VM and a simulated machine's accounts all become a profile, so there is one way to
//! print, draw, compare and store them.

mod bottleneck;
mod diff;
pub mod firefox;
pub mod flame;
mod holder;
mod interval;
mod lock;
mod moments;
mod part;
pub mod pprof;
mod read;
pub mod speedscope;
mod spent;
mod spread;
mod stacks;
mod thread;
mod timeline;

pub use bottleneck::UNKNOWN;
pub use diff::{Change, Difference, unlike};
pub use holder::{Holder, Times};
pub use interval::Interval;
pub use lock::{Kind, Lock};
pub use moments::Moments;
pub use part::{By, Part, Parts};
pub use read::parse;
pub use spent::Spent;
pub use spread::{Bucket, Spread};
pub use stacks::{IDLE, PREEMPTED, Stacks};
pub use thread::{Thread, Wait};
pub use timeline::{Row, Timeline};

use serde::{Deserialize, Serialize};
use stats::environment::Environment;
use stats::record::Subject;

/// The parts of a system that cannot be seen, for lack of rights or of support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Work in the kernel.
    pub kernel: bool,
    /// Waits for the kernel's locks, and time off CPU.
    pub waits: bool,
}

impl Hidden {
    /// Names the hidden parts in words; none if everything can be seen.
    pub fn words(self) -> Option<&'static str> {
        match (self.kernel, self.waits) {
            (false, false) => None,
            (false, true) => Some("waits"),
            (true, false) => Some("the kernel"),
            (true, true) => Some("the kernel and waits"),
        }
    }
}

/// One profiled run. As JSON it is one line, of `kind` "profile".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "profile")]
pub struct Profile {
    /// The subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// Seconds of watching, by the system's clock (virtual on a simulated machine).
    pub seconds: f64,
    /// The clock of busy time: `cycles`, `cpu-clock`, `virtual time`.
    pub clock: String,
    /// Operations a second while watched; `null` for processes that already ran.
    pub rate: Option<f64>,
    /// Operations a second of the same run before and after, unwatched; `null` where watching costs
    /// nothing, and without a rate.
    pub rate_unwatched: Option<f64>,
    /// The share of its rate that the run lost to being watched, as an interval of 95 %; `null` if
    /// that is not known.
    #[serde(default)]
    pub cost_interval: Option<[f64; 2]>,
    /// Seconds that the threads of the tasks lived, added up; shares refer to this. `null` where
    /// tasks are the only threads and live for the whole run.
    #[serde(default)]
    pub lived: Option<f64>,
    /// The parts that could not be seen: their absence from the profile proves nothing.
    #[serde(default)]
    pub hidden: Hidden,
    /// Busy stacks, in seconds of CPU time.
    pub busy: Stacks,
    /// Stacks that waited (blocked, or for a lock), in seconds of task time.
    pub waits: Stacks,
    /// The locks waited for, the costliest first.
    pub locks: Vec<Lock>,
    /// The holders of these locks, where they are known, the one that most waited for first.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// How the tasks spent their time, where that was recorded.
    #[serde(default)]
    pub spent: Option<Spent>,
    /// The tasks' time broken down, where it was recorded.
    #[serde(default)]
    pub parts: Parts,
    /// How long tasks that were ready waited for a CPU.
    #[serde(default)]
    pub queued: Option<Spread>,
    /// What the tasks waited for when.
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// When the stacks were seen, where that was recorded. It is no part of the JSON, which it
    /// would make many times longer.
    #[serde(skip)]
    pub moments: Option<Moments>,
    /// Why what was recorded cannot be trusted; none if it can.
    #[serde(default)]
    pub doubt: Option<String>,
    /// One sentence that names the bottleneck.
    pub bottleneck: String,
    /// Gaps and how to close them, and doubts.
    pub notes: Vec<String>,
    /// The machine; `null` if it was simulated, or recorded by another program.
    pub machine: Option<Environment>,
}

impl Profile {
    /// A profile of `seconds` in which nothing was seen yet, and nothing is hidden.
    pub fn new(subject: Subject, seconds: f64, clock: &str) -> Self {
        Profile {
            subject,
            seconds,
            clock: clock.to_owned(),
            rate: None,
            rate_unwatched: None,
            cost_interval: None,
            lived: None,
            hidden: Hidden::default(),
            busy: Stacks::default(),
            waits: Stacks::default(),
            locks: Vec::new(),
            holders: Vec::new(),
            spent: None,
            parts: Parts::default(),
            queued: None,
            timeline: None,
            moments: None,
            doubt: None,
            bottleneck: String::new(),
            notes: Vec::new(),
            machine: None,
        }
    }

    /// Seconds that all tasks had, including the threads and processes they started; shares refer
    /// to this.
    pub fn task_seconds(&self) -> f64 {
        let tasks = self.seconds * f64::from(self.subject.tasks);
        self.lived.filter(|&lived| lived > 0.0).unwrap_or(tasks)
    }

    /// Seconds in which tasks were not idle; the shares of locks refer to this.
    pub fn active_seconds(&self) -> f64 {
        let idle = self.waits.split(IDLE).0.total();
        (self.task_seconds() - idle).max(0.0)
    }

    /// Sets the sentence that names the bottleneck, from the profile so far.
    pub fn name_bottleneck(&mut self) {
        self.bottleneck = bottleneck::bottleneck(self);
    }

    /// The share of its rate that the run lost to being watched; none if unknown.
    pub fn cost(&self) -> Option<f64> {
        let unwatched = self.rate_unwatched.filter(|&rate| rate > 0.0)?;
        Some(1.0 - self.rate? / unwatched)
    }
}

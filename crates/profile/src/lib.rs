//! Where tasks' time went, whatever they ran on.
//!
//! A [`Profile`] is what a run of a workload was seen doing: stacks that were busy,
//! stacks that waited, and the locks waited for. The kernel's samples, our own lock
//! profile and a simulated machine's accounts all become one, and from there on there
//! is one way to print, draw, compare and keep them.

mod bottleneck;
mod diff;
pub mod flame;
mod lock;
mod read;
pub mod speedscope;
mod stacks;

pub use bottleneck::{UNKNOWN, bottleneck};
pub use diff::{Change, Difference};
pub use lock::{Kind, Lock};
pub use read::{parse, read};
pub use stacks::{PREEMPTED, Stacks};

use serde::{Deserialize, Serialize};
use stats::environment::Environment;
use stats::record::Subject;

/// One profiled run. As JSON it is one line, of `kind` "profile".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "profile")]
pub struct Profile {
    /// What ran.
    #[serde(flatten)]
    pub subject: Subject,
    /// Seconds it was watched, by the system's clock (virtual on a simulated machine).
    pub seconds: f64,
    /// What busy time was measured by: `cycles`, `cpu-clock`, `virtual time`.
    pub clock: String,
    /// Operations a second while it was watched.
    pub rate: f64,
    /// Operations a second of the same run unwatched, just before; `null` where watching
    /// costs nothing.
    pub rate_unwatched: Option<f64>,
    /// Busy stacks, in seconds of CPU time.
    pub busy: Stacks,
    /// Stacks that waited (blocked, or for a lock), in seconds of task time.
    pub waits: Stacks,
    /// The locks waited for, the costliest first.
    pub locks: Vec<Lock>,
    /// One sentence that names what holds the tasks up.
    pub bottleneck: String,
    /// What was not seen, and how to see it; what is doubtful.
    pub notes: Vec<String>,
    /// The machine; `null` if it was simulated.
    pub machine: Option<Environment>,
}

impl Profile {
    /// Seconds that all tasks had together: what shares are of.
    pub fn task_seconds(&self) -> f64 {
        self.seconds * f64::from(self.subject.tasks)
    }

    /// The part of its rate that the run lost to being watched; none if it is not known.
    pub fn cost(&self) -> Option<f64> {
        let unwatched = self.rate_unwatched.filter(|&rate| rate > 0.0)?;
        Some(1.0 - self.rate / unwatched)
    }
}

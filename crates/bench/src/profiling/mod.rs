//! Where the tasks' time goes, on each kind of system.
//!
//! Each file makes a [`Profile`]: `os`, `hosted` and `kernel` by watching a second run of the plan
//! that was measured unwatched, [`simulated`] from the machine's own accounts, and [`Attached`] of
//! processes that already run.

mod attached;
mod hosted;
mod kernel;
mod names;
mod os;
mod own;
pub mod simulated;
mod watched;

pub use attached::Attached;

use crate::harness::{Bars, Failure, Plan, Schedule};
use crate::system::System;
use profile::Profile;
use stats::environment::Environment;

/// The subject of a profile.
pub struct Subject<'a> {
    pub system: &'a System,
    /// The plan that runs.
    pub plan: Plan,
    /// The schedule of the unwatched and of the watched run.
    pub schedule: Schedule,
    /// The options of recording the kernel.
    pub options: perf::Options,
    /// Describes this computer; takes the time to watch its load.
    pub machine: fn() -> Environment,
    /// Shows the progress.
    pub bars: Bars,
}

impl Subject<'_> {
    /// Runs and watches; none if the user interrupts before there is something to see.
    pub fn profile(&self) -> Result<Option<Profile>, Failure> {
        match self.system {
            System::Os(_) => os::profile(self),
            System::Hosted(_) => hosted::profile(self),
            System::Kernel(target) => kernel::profile(self, target),
            System::Sim(target) => {
                simulated::of(target, &self.plan, self.schedule.duration).map(Some)
            }
        }
    }
}

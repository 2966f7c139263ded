//! Where the tasks' time goes, on each kind of system.
//!
//! Each file makes a [`Profile`]: `os`, `hosted` and `kernel` by watching a second run of the plan
//! that was measured unwatched, [`simulated`] from the machine's own accounts, and [`Attached`] of
//! processes that already run. [`Live`] watches these for as long as the user looks, and `timed` a
//! command that takes long.

mod attached;
mod hosted;
mod kernel;
mod live;
mod names;
mod os;
mod own;
pub mod simulated;
mod timed;
mod watched;

pub use attached::Attached;
pub use live::Live;

use crate::harness::{Bars, Body, Failure, Job, Plan, Schedule};
use crate::system::System;
use profile::Profile;
use stats::environment::Environment;
use std::time::Duration;

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
    /// Runs a command of the user's own once and watches it by time: for `span`, or until it
    /// completes. None if the plan has no command, or one that completes within a sample.
    pub fn once(&self, span: Option<Duration>) -> Result<Option<Profile>, Failure> {
        match (self.system, self.plan.workload) {
            (System::Os(_), Job::Own(own)) if matches!(own.body, Body::Command(_)) => {
                timed::profile(self, own, span)
            }
            _ => Ok(None),
        }
    }

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

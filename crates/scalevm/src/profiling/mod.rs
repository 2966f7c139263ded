//! Where the tasks' time goes, on each kind of system.
//!
//! Each file makes a [`Profile`] of a run: [`os`] and [`hosted`] by watching a second run
//! of what was measured unwatched, [`simulated`] from the machine's own accounts.

mod hosted;
mod os;
mod own;
mod recorded;
pub mod simulated;
mod watched;

use crate::cli::{CommonArgs, On};
use crate::harness::{Failure, Plan, Schedule};
use profile::Profile;

/// What to profile.
pub struct Subject<'a> {
    /// The system.
    pub on: On,
    /// How our VM is built, if it is ours.
    pub vm: Option<&'a str>,
    /// What runs.
    pub plan: Plan,
    /// How long, unwatched and watched each.
    pub schedule: Schedule,
    /// Samples of busy CPUs a second.
    pub frequency: u32,
    /// Where tasks are pinned, and which machine is simulated.
    pub common: &'a CommonArgs,
}

impl Subject<'_> {
    /// Runs and watches; none if the user interrupts before there is something to see.
    pub fn profile(&self) -> Result<Option<Profile>, Failure> {
        match self.on {
            On::Os => os::profile(self),
            On::Hosted => hosted::profile(self),
            On::Sim => simulated::profile(self).map(Some),
        }
    }
}

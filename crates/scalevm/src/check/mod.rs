//! `scalevm check`: what a simulated machine can see that no test on real CPUs can.
//!
//! [`conflicts`] asks whether operations that commute touch common cache lines, [`races`]
//! whether some schedule breaks what the locks, epochs and the VM promise. Both judge
//! the very code that runs elsewhere.

mod conflicts;
mod planted;
pub mod races;
mod sites;
mod vms;

use crate::cli::{Check, CheckArgs};
use crate::harness::Failure;

/// Checks what is asked for.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    match &args.what {
        Check::Conflicts(args) => conflicts::run(args),
        Check::Races(args) => races::run(args),
    }
}

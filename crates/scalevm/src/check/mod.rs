//! `scalevm check`: whether the VM does what it should.
//!
//! On simulated machines, which see what no test on real CPUs can, [`conflicts`] asks whether
//! operations that commute touch common cache lines, [`races`] whether some schedule breaks
//! what the locks, epochs and the VM promise. [`sequences`] asks whether operations mean what
//! the model, and the kernel of this computer, say they mean. All judge the very code that
//! runs elsewhere.

mod conflicts;
mod ours;
mod planted;
pub mod races;
pub mod sequences;
mod sites;
mod vms;

use crate::cli::{Check, CheckArgs};
use crate::harness::Failure;

/// Checks what is asked for.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    match &args.what {
        Check::Conflicts(args) => conflicts::run(args),
        Check::Races(args) => races::run(args),
        Check::Fuzz(args) => sequences::fuzz(args),
        Check::Model(args) => sequences::model(args),
        Check::Oracle(args) => sequences::oracle(args),
    }
}

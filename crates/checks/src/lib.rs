//! Checks of the VM.
//!
//! On simulated machines, which see more than a test on real CPUs can, [`conflicts`] asks whether
//! operations that commute touch common cache lines, [`races`] whether some schedule breaks
//! a promise of the locks, epochs or the VM. [`sequences`] asks whether operations mean what
//! the model, and the kernel of this computer, say they mean. All check the same code that
//! runs elsewhere.

pub mod conflicts;
mod ours;
mod planted;
pub mod races;
pub mod sequences;
mod sites;
mod vms;

pub use ours::Ours;
pub use sites::Frame;

/// The tests simulate, and simulated CPUs allocate in their machine.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

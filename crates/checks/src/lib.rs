//! Checks of the VM.
//!
//! Simulated machines see more than a test on real CPUs can. On them, [`conflicts`] checks that
//! operations that commute share no cache lines, and [`races`] looks for schedules that break a
//! guarantee of the locks, epochs or the VM. [`sequences`] compares operations with the model, and
//! with the kernel of this computer. All check the same code that runs elsewhere.

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

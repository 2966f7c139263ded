//! Measuring workloads on a system: the kernel of this computer ([`os`]), our own VM on threads ([`ours`]) or on a
//! simulated machine ([`simulated`]).
//!
//! A [`Target`] starts tasks and hands out a [`Running`]; [`measure()`] reads the counters of that at intervals.
//! A workload is one of `workloads`, or the user's [`own`]. [`profiling`] watches a run and says where its time went.
//!
//! Nothing here reads a command line, prints results or chooses an exit code: the command does.

mod harness;
pub mod os;
pub mod ours;
pub mod own;
pub mod profiling;
pub mod simulated;
mod system;
pub mod tasks;

pub use harness::*;
pub use system::{On, System};

/// The tests simulate, and simulated CPUs allocate in their machine.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

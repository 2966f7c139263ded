//! Measures workloads on a system: the kernel of this computer ([`os`]), scalevm's VM on threads
//! ([`ours`]) or on a simulated machine ([`simulated`]), or scalevm's kernel in a guest
//! ([`kernel`]).
//!
//! A [`Target`] starts tasks and hands out a [`Running`]; [`measure()`] reads the counters of that
//! at intervals. A workload is one of `workloads`, or the user's [`own`]. [`profiling`] watches a
//! run and says where its time went.
//!
//! Without the feature `ours` only [`os`] is left: the program that runs inside guests
//! ([`inside`]).
//!
//! Nothing here reads a command line, prints results or chooses an exit code: the command does.

#[cfg(feature = "ours")]
mod delays;
mod harness;
pub mod inside;
#[cfg(feature = "ours")]
pub mod kernel;
#[cfg(feature = "ours")]
mod on;
pub mod os;
#[cfg(feature = "ours")]
pub mod ours;
pub mod own;
#[cfg(feature = "ours")]
mod points;
#[cfg(feature = "ours")]
pub mod profiling;
#[cfg(feature = "ours")]
pub mod simulated;
#[cfg(feature = "ours")]
mod system;
pub mod tasks;

#[cfg(feature = "ours")]
pub use delays::{Delayed, Delays};
pub use harness::*;
#[cfg(feature = "ours")]
pub use on::On;
#[cfg(feature = "ours")]
pub use points::{JOBS, Workers};
#[cfg(feature = "ours")]
pub use system::System;

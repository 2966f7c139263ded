//! The lock micro-benchmark (case study 004): the cost of locks, epochs and counters alone and
//! under contention, compared with those of other libraries.
//!
//! - *alone*: one thread repeats the operation, nothing inside. All candidates are
//!   measured in turn, round by round, and the median of the rounds is the
//!   figure, so that a drift of the machine affects all of them alike.
//! - *contended*: threads, pinned to the CPUs in turn, repeat the operation with two
//!   writes to one shared line inside and a few instructions between. Rounds
//!   alternate in the same way.
//! - *simulated*: [`simulated`], the locks of `sync` on a machine with more CPUs than this.
//!
//! Work is verified: if a lock has lost one update, or is not free at the end, that is
//! an error and no row of a table.

mod alone;
mod contended;
mod counter;
mod epoch;
mod mutex;
pub mod registry;
mod rwlock;
mod schedule;
pub mod simulated;
mod subject;
#[cfg(test)]
mod tests;

/// The tests simulate, and simulated CPUs allocate in their machine.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

pub use registry::{Group, Row};
pub use schedule::{Figures, measure, turns};

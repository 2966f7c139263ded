//! Turns a recorded program into a workload.
//!
//! [`compile`] makes a part of each recorded thread: what the thread did to memory, the computing
//! between, and the waits that keep the recorded order where it matters. The
//! [result](workloads::replay::Replay) runs on every system. It never touches memory that it has
//! not mapped: what does not fit the mappings, because records were lost or because it cannot be
//! replayed, is [left out](LeftOut) and counted.

mod compile;
mod left_out;
mod memory;
mod order;
mod ranges;
mod steps;

pub use compile::{Compiled, compile};
pub use left_out::LeftOut;

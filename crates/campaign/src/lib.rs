//! Campaigns: many independent runs of one command, each a *point*.
//!
//! A [`Plan`] lists the points; a [`Results`] directory holds one file for each point that is done.
//! That directory is the whole state: a runner ([`run`]) finds the points that have no file, runs
//! the command for each of them, and puts its output there, whole or not at all. So any number of
//! runners may work on one plan, on any number of machines that share the directory, without a
//! lock, a server or a queue: two that run the same point waste time, and write the same bytes.
//! After an interruption the runner is simply run again.
//!
//! An engine ([`slurm`]) only starts runners, each on its [`Shard`] of the points. Points must give
//! the same result wherever they run, as on simulated machines. [`collect`] puts all results into
//! one file, in the order of the points.

mod collect;
mod error;
mod plan;
mod results;
mod run;
mod shard;
pub mod slurm;

pub use collect::collect;
pub use error::Error;
pub use plan::{Plan, Point};
pub use results::{Results, State};
pub use run::{Outcome, Runner, run};
pub use shard::Shard;

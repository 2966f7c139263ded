//! The experiments of the seeds on simulated machines: their figures, ours, the ratio.
//!
//! A [`System`] names the runs it needs ([`Point`]s) and makes [`Row`]s of what they gave.
//! A [`Lab`] is one machine on which the runs are done, with its corners
//! (`Profile::corners`). Nothing here is fitted: machines come from micro-benchmarks,
//! private times from one task.

mod lab;
mod point;
mod row;
mod s19;
mod s3;
mod s4;
mod s5;

pub use lab::{Effort, Lab};
pub use point::Point;
pub use row::{Aim, Row, Spread, Verdict};

use crate::harness::Failure;
use sim::profile::Profile;

/// One of the seeds' systems.
pub struct System {
    /// Its name in the project's design.
    pub name: &'static str,
    /// One line on what is reproduced.
    pub about: &'static str,
    /// The machines it is reproduced on, if no other is asked for.
    pub machines: &'static [&'static str],
    /// The runs it needs.
    pub points: fn(&Profile) -> Vec<Point>,
    /// What came out of them.
    pub rows: fn(&Lab) -> Result<Vec<Row>, Failure>,
}

/// All that can be reproduced.
pub const SYSTEMS: [System; 4] = [s3::SYSTEM, s4::SYSTEM, s5::SYSTEM, s19::SYSTEM];

/// The system of that name.
pub fn find(name: &str) -> Option<&'static System> {
    static ALL: [System; 4] = SYSTEMS;
    ALL.iter().find(|system| system.name == name)
}

//! The experiments of the case studies on simulated machines: the published figures, the simulated
//! ones, and their ratio.
//!
//! A [`System`] names the runs it needs ([`Point`]s) and makes [`Row`]s of their results
//! ([`Outcome`]s). A [`Lab`] is one machine on which the runs are done, with its corners
//! (`Profile::corners`). Nothing here is fitted: machines come from micro-benchmarks, private times
//! from one task.
//!
//! # A system
//!
//! is a file with a [`System`]. Its points are runs of a workload ([`Work`]), of a lock, or of
//! something that no workload shows ([`Probe`]):
//!
//! ```text
//! const STOCK: Work = Work::processes("build", Preset::FREEBSD_LOCKLESS_DI, 32).jobs(2);
//! const AFTER: Work = Work::processes("build", Preset::FREEBSD_OBM, 32).jobs(2);
//! const fn points(_: &Profile) -> Vec<Point> {
//!     vec![STOCK.into(), AFTER.into(), STOCK.watched().into()]
//! }
//! ```
//!
//! A row is the value of a quantity of the outcomes, seed by seed, on the machine and on each
//! corner:
//!
//! ```text
//! let quote = "case study 002: 307.43 sys of 567.74";
//! let aim = Aim::Published { figure: 0.54, quote, band: Band::LAYOUT };
//! let ratio = |world| world.ratio_of(AFTER, STOCK, Outcome::sys);
//! Row::new(lab, "sys, patched over stock", aim, ratio)
//! ```
//!
//! A machine with too few CPUs has no such row. Of its runs, one without jobs is short and has all
//! seeds; one with jobs goes to its end and has three seeds at most; a watched one has one seed and
//! no corner. A row that misses gives the reason ([`Row::why`]); a statement in words becomes a
//! range ([`Aim::Words`]); a row that no simulation could make miss is a check of the instrument
//! ([`Row::check`]), and counted apart. A [`Beyond`] compares the default design with the case
//! study's "after" on larger machines.

pub mod anon_vma;
pub mod beyond;
mod build_locks;
mod build_times;
mod epochs;
mod exim;
mod harness;
mod holes;
mod hottest;
pub mod incidents;
mod invalidation_mutex;
mod lab;
mod lock_kinds;
mod ministat;
mod one_byte_mutexes;
mod one_lock;
mod other_paths;
mod outcome;
mod own_design;
mod page_queues;
mod player;
mod point;
pub mod predict;
pub mod published;
mod pv_chunks;
mod pv_list_locks;
mod row;
mod sleep_queues;
mod unlocked_faults;

pub use beyond::Beyond;
pub use lab::{Effort, Lab};
pub use outcome::Outcome;
pub use point::{Point, Probe, Work};
pub use row::{Aim, Class, Row, Unit, Verdict, tally};

use bench::Failure;
use row::Spread;

/// One of the case studies' systems.
pub struct System {
    /// Its name in the project's design.
    pub name: &'static str,
    /// One line on the reproduced experiment.
    pub about: &'static str,
    /// The machines on which it is reproduced by default.
    pub machines: &'static [&'static str],
    /// Its figures, which ask the lab for the runs that they are made of.
    pub rows: fn(&Lab) -> Result<Vec<Row>, Failure>,
    /// The comparisons beyond the case study.
    pub beyond: &'static [Beyond],
}

impl System {
    /// The case study that it is of, by its number.
    pub fn document(&self) -> &'static str {
        match self.name {
            "S7" => "001",
            "S8" | "S9" | "S10" | "S11" => "002",
            "S12" | "S13" | "S14" | "S15" | "S16" | "S21" => "003",
            "S17" | "S18" | "S19" | "S20" => "004",
            _ => "000",
        }
    }
}

/// All that can be reproduced.
pub const SYSTEMS: &[System] = &[
    harness::SYSTEM,
    one_lock::SYSTEM,
    invalidation_mutex::SYSTEM,
    epochs::SYSTEM,
    own_design::SYSTEM,
    ministat::SYSTEM,
    hottest::SYSTEM,
    one_byte_mutexes::SYSTEM,
    pv_list_locks::SYSTEM,
    pv_chunks::SYSTEM,
    build_times::SYSTEM,
    unlocked_faults::SYSTEM,
    page_queues::SYSTEM,
    sleep_queues::SYSTEM,
    other_paths::SYSTEM,
    build_locks::SYSTEM,
    anon_vma::SYSTEM,
    holes::SYSTEM,
    lock_kinds::SYSTEM,
    exim::SYSTEM,
    player::SYSTEM,
];

pub fn find(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}

/// The tests simulate, and simulated CPUs allocate in their machine.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

#[cfg(test)]
mod tests;

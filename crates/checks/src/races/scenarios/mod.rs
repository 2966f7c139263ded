//! Conditions that must hold in every schedule, one file for each family.

pub mod alan_cox;
pub mod counter;
pub mod epoch;
mod family;
mod files;
pub mod fork;
pub mod hazard;
pub mod mutex;
pub mod percpu;
pub(super) mod process;
pub mod queues;
mod reclaim;
mod rwlock;
mod spaces;
mod store;
mod tables;
pub mod write_out;

use super::play::Scenario;

/// All scenarios of the real code.
pub fn all() -> Vec<Scenario> {
    let families = [
        mutex::all(),
        rwlock::all(),
        queues::all(),
        counter::all(),
        percpu::all(),
        epoch::all(),
        hazard::all(),
        alan_cox::all(),
        spaces::all(),
        fork::all(),
        files::all(),
        write_out::all(),
        reclaim::all(),
        family::all(),
        tables::all(),
    ];
    families.into_iter().flatten().collect()
}

/// Lets the calling CPU compute for a random number of nanoseconds below `most`.
fn pause(most: u64) {
    sim::compute(sim::dice(most) as f64);
}

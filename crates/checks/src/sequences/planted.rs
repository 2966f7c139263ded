//! Planted bugs, which show that the comparison finds differences.

use super::Found;
use oracle::careless::{Careless, Neglect};
use oracle::check::{play, sequence_for, shrink};
use oracle::planted::{Bug, Planted};
use oracle::{Broken, System};

/// Sequences after which a bug counts as not found.
const SEEDS: u64 = 1000;
const STEPS: usize = 100;

/// The bugs' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    Bug::ALL.into_iter().map(Bug::name)
}

/// The names of the bugs of systems that are careless when memory is short.
pub fn neglects() -> impl Iterator<Item = &'static str> {
    Neglect::ALL.into_iter().map(Neglect::name)
}

pub fn bugs() -> impl Iterator<Item = Box<dyn System>> {
    let system = |bug| Box::new(Planted::new(bug)) as _;
    Bug::ALL.into_iter().map(system)
}

pub fn careless() -> impl Iterator<Item = Box<dyn System>> {
    let system = |neglect| Box::new(Careless::new(neglect)) as _;
    Neglect::ALL.into_iter().map(system)
}

/// The first difference from seed `first` on, shortened.
///
/// # Errors
/// If the system cannot be used any more.
pub fn search(planted: &mut dyn System, first: u64) -> Result<Option<Found>, Broken> {
    let mut systems: [&mut dyn System; 1] = [planted];
    for seed in first..first + SEEDS {
        let steps = sequence_for(seed, STEPS, &systems);
        if let Err(found) = play(&steps, &mut systems)? {
            let short = shrink(found, &mut systems)?;
            return Ok(Some((seed, short)));
        }
    }
    Ok(None)
}

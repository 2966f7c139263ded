//! When stacks were seen.

use crate::Stacks;

/// The stacks in slices of the time for which the tasks were watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Seconds of a slice.
    pub slice: f64,
    /// The busy stacks of each slice; slices at the end in which there are none may be left out.
    pub busy: Vec<Stacks>,
    /// The stacks of each slice that waited, likewise.
    pub waits: Vec<Stacks>,
}

impl Moments {
    /// The slices with their stacks cut as [`Stacks::begun_at`] does.
    pub fn begun_at(&self, marker: &str) -> Moments {
        let cut = |slices: &[Stacks]| slices.iter().map(|one| one.begun_at(marker)).collect();
        Moments {
            slice: self.slice,
            busy: cut(&self.busy),
            waits: cut(&self.waits),
        }
    }
}

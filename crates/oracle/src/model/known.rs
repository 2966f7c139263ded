//! The model's knowledge, for generating operations that affect the same memory.

use super::Model;
use super::process::place;
use crate::address::{Address, PAGE};
use crate::outcome::Region;
use crate::step::ProcessId;

/// The state at one moment.
pub struct Known {
    /// The processes alive, and the regions of each, in order.
    pub processes: Vec<(ProcessId, Vec<Region>)>,
}

impl Model {
    /// The current state.
    pub fn known(&self) -> Known {
        let processes = self.processes.iter().map(|(&id, process)| {
            let mut regions: Vec<Region> = Vec::new();
            for &number in process.pages.keys() {
                let start = place(number * PAGE);
                let next = Region {
                    pages: 1,
                    ..Region::nothing(start)
                };
                let last = regions.last_mut();
                if !last.is_some_and(|last| last.absorb(&next)) {
                    regions.push(next);
                }
            }
            (id, regions)
        });
        Known {
            processes: processes.collect(),
        }
    }
}

impl Region {
    /// An empty region at `start`.
    pub fn nothing(start: Address) -> Self {
        Region {
            start,
            pages: 0,
            prot: crate::step::Prot::NONE,
            shared: false,
            file: None,
        }
    }
}

//! The heap's end.

use super::{HEAP_START, MAP_START, Space, whole_pages};
use crate::error::Error;
use crate::policy::Policies;
use crate::prot::Prot;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// The heap's end, in bytes.
    pub fn current_break(&self) -> usize {
        self.map.read().break_at
    }

    /// Moves the heap's end; pages above the new one go.
    pub fn set_break(&self, end: usize) -> Result<(), Error> {
        if !(HEAP_START..MAP_START).contains(&end) {
            let reason = "the break is outside of the heap";
            return Err(Error::Invalid { reason });
        }
        let mut map = self.map.write();
        let old = whole_pages(map.break_at).unwrap_or(map.break_at);
        let new = whole_pages(end).unwrap_or(end);
        if new > old {
            let grown = VaRange {
                start: old,
                end: new,
            };
            if !map.regions.overlapping(grown).is_empty() {
                return Err(Error::NoAddresses { bytes: new - old });
            }
            self.insert(&mut map, grown, Prot::READ_WRITE)?;
        } else if new < old {
            map.regions.make_room()?;
            let shrunk = VaRange {
                start: new,
                end: old,
            };
            self.remove(&mut map, shrunk);
        }
        map.break_at = end;
        Ok(())
    }
}

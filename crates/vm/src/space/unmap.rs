//! Unmapping memory.

use super::{MAP_START, Map, Space};
use crate::error::Error;
use crate::policy::{Policies, Reservation};
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Unmaps whatever is mapped in `range` (its end rounded up to pages). When it
    /// returns, no CPU can reach the pages. Holes are no error, as POSIX says.
    pub fn unmap(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let mut map = self.map.write();
        map.regions.make_room()?;
        self.remove(&mut map, range);
        Ok(())
    }

    /// Takes all that is in `range` away. There must be room in the regions.
    pub(super) fn remove(&self, map: &mut Map, range: VaRange) {
        let old = map.regions.overlapping(range);
        if old.is_empty() {
            return;
        }
        let charged: u64 = old.iter().map(|r| r.charged_in(range)).sum();
        map.regions.replace(range, None);
        if range.end > MAP_START {
            map.lowest_gap = map.lowest_gap.min(range.start.max(MAP_START));
        }
        self.pmap.remove(range);
        if charged > 0 {
            self.vm.swap().release(charged);
        }
    }

    /// Unmaps all in `range` for good; nobody else has the space.
    pub(super) fn clear(&mut self, range: VaRange) {
        // Whole regions go, so no room is needed.
        self.remove(&mut self.map.write(), range);
    }
}

//! Leaf tables that can be made again.
//!
//! A table without entries says nothing, and an object's page that is mapped no more is found
//! by the next fault. So when memory is out, the tables of slots that have nothing else can go:
//! their mappings are removed as `munmap` removes them (what the walker has noted of the pages
//! stays with the pages), and their pages stay with their objects. Not so private pages and
//! what is in the swap space: the entry is all that knows them. Memory that is locked stays
//! mapped.
//!
//! One slot is locked at a time. A sweep goes on where the last one has ended.

use super::Pmap;
use crate::policy::Policies;
use crate::tree::{ALL, Flags, Kind, Part, Place};
use machine::{Atomic, Flush, Frame, Ordering, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Frees leaf tables that can be made again, about `wanted`; how many it did. With less
    /// than `wanted` it has seen all there are. O(slots). The caller holds no lock.
    pub(crate) fn sweep(&self, wanted: usize) -> usize {
        // Relaxed: whoever else sweeps may begin at the same place.
        let from = self.swept.load(Ordering::Relaxed);
        let behind = VaRange {
            start: from,
            end: ALL.end,
        };
        let before = VaRange {
            start: ALL.start,
            end: from,
        };
        let places = [behind, before].into_iter();
        let places = places.flat_map(|range| self.tree.places(range));
        let mut places = places.filter(|place| self.may_spare(place));
        self.free_leaves(&mut places, wanted, Flush::All, |place| {
            self.swept.store(place.range.end, Ordering::Relaxed);
            self.take_leaf(place)
        })
    }

    /// Whether a slot may have a table that can be made again, as of a moment ago.
    fn may_spare(&self, place: &Place<'_, M, P>) -> bool {
        place.level == 0 && only_objects(place) && self.has_leaf(place.range.start)
    }

    /// Takes the table away from a slot of level 0 if it can be made again. It may be freed when
    /// it is flushed.
    fn take_leaf(&self, place: Place<'_, M, P>) -> Option<Frame> {
        let lock = || Ok(self.tree.lock_small(place, place.range));
        let mut removal = self.removal(lock).ok()?;
        if !only_objects(&place) || removal.locked.parts().any(|part| is_locked(&part)) {
            return None;
        }
        removal.pages();
        let part = removal.locked.parts().next()?;
        self.unlink(part)
    }
}

/// Whether all entries of a slot name pages of objects. Exact under its lock.
fn only_objects<M: Platform, P: Policies<M>>(place: &Place<'_, M, P>) -> bool {
    place.slot.count(Kind::Private) + place.slot.count(Kind::Swapped) == 0
}

/// Whether something that is locked in memory may be mapped.
fn is_locked<M: Platform, P: Policies<M>>(part: &Part<'_, M, P>) -> bool {
    let mut is_locked = false;
    part.for_each(|mapped| is_locked |= mapped.flags.has(Flags::LOCKED));
    is_locked && !part.is_vacant()
}

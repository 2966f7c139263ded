//! Leaf tables that nobody needs any more, and the PV tables beside them.
//!
//! The entry that leads to a leaf table shares its line with seven neighbours', so taking a
//! table away is no matter of its slot alone. An unmap frees the tables of the lines that it
//! covers whole; of other slots that have become empty each CPU remembers the last few, and
//! frees the table of one when it is pushed out ([`crate::space`]'s arenas). So CPUs that map
//! and unmap side by side write no common line, and what is kept is bounded.

use super::{Pmap, Table};
use crate::policy::Policies;
use crate::tree::{Part, Place};
use machine::{Atomic, Flush, Frame, Ordering, Platform, VaRange};

/// What the entries of a line lead to: eight leaf tables.
const LINE: usize = 16 << 20;

/// Tables that are freed after one flush.
const BATCH: usize = 64;

/// The part of `range` whose tables' entries are in no line with others'; empty if there is
/// none.
pub(crate) fn whole_lines(range: VaRange) -> VaRange {
    let start = range.start.next_multiple_of(LINE);
    let end = range.end / LINE * LINE;
    VaRange {
        start,
        end: end.max(start),
    }
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Frees the leaf tables of the slots in `range` that are empty. One flush for 64.
    pub(crate) fn trim(&self, range: VaRange) {
        let mut places = self.tree.places(range).filter(is_spare).peekable();
        while places.peek().is_some() {
            self.free_leaves(&mut places, BATCH, Flush::Range(range), |place| {
                let mut locked = self.tree.lock_small(place, place.range);
                let mut empty = locked.parts().filter(|part| part.is_empty());
                empty.next().and_then(|part| self.unlink(part))
            });
        }
    }

    /// Frees the leaf tables that `unlink` takes away from slots of `places`, after one `flush`,
    /// until it has got `wanted` of them, or [`BATCH`]; how many it has.
    pub(super) fn free_leaves<'a>(
        &'a self,
        places: &mut impl Iterator<Item = Place<'a, M, P>>,
        wanted: usize,
        flush: Flush,
        unlink: impl Fn(Place<'a, M, P>) -> Option<Frame>,
    ) -> usize {
        let mut tables = [Frame(0); BATCH];
        let mut count = 0;
        for table in places.filter_map(unlink).take(wanted.min(BATCH)) {
            tables[count] = table;
            count += 1;
        }
        if count > 0 {
            self.flush(flush);
        }
        // No walker knows them any more, and they were empty.
        tables[..count]
            .iter()
            .for_each(|&at| self.vm.free(at, true));
        count
    }

    /// Takes the leaf table away from a slot that is held and has no entry, if it has one. It
    /// may be freed when it is flushed; until then a walker finds nothing in it.
    pub(super) fn unlink(&self, mut part: Part<'_, M, P>) -> Option<Frame> {
        if !part.is_vacant() {
            return None;
        }
        let leaf = part.leaf().get()?;
        self.free_pv_tables(&mut part);
        // AcqRel: as where entries are removed.
        self.superpage(part.range().start).swap(0, Ordering::AcqRel);
        part.inside().leaf = Table::NONE;
        Some(leaf)
    }
}

/// Whether a slot may have a table that it does not need.
fn is_spare<M: Platform, P: Policies<M>>(place: &Place<'_, M, P>) -> bool {
    place.level == 0 && place.slot.is_empty() && place.slot.is_vacant()
}

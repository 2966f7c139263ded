//! Frees leaf tables that are not needed any more, and their PV tables.
//!
//! The entry that leads to a leaf table shares its line with seven neighbours', so taking a
//! table away concerns more than its slot. An unmap frees the tables of the lines that it
//! covers whole; of other slots that have become empty each CPU remembers the last few, and
//! frees the table of one when it is pushed out ([`crate::space`]'s arenas). So CPUs that map and
//! unmap neighbouring ranges write no common line, and the number of tables kept is bounded.
//!
//! # Tables that can be made again
//! A table without entries holds no information, and the next fault on an object's page that is
//! mapped no more finds it. So when no frame is free, the tables of slots that have nothing else
//! can go: their mappings are removed as `munmap` removes them (the walker's marks of the pages
//! stay with the pages), and their pages stay with their objects. Private and swapped pages stay
//! mapped, since only the entry leads to them, and so does locked memory.
//!
//! One slot is locked at a time. A sweep goes on where the last one has ended.

use super::{Pmap, superpage};
use crate::flags::Flags;
use crate::frames::Content;
use crate::pv::Table;
use crate::system::System;
use crate::tree::{ALL, Kind, Part, Place};
use machine::{Atomic, Flush, Frame, Ordering, VaRange};

/// Bytes under the entries of a line: eight leaf tables.
const LINE: usize = 16 << 20;

/// The most tables that are freed after one flush.
const BATCH: usize = 64;

/// The part of `range` whose tables' entries share no cache line with others'; empty if there is
/// none.
pub(crate) fn whole_lines(range: VaRange) -> VaRange {
    let start = range.start.next_multiple_of(LINE);
    let end = range.end / LINE * LINE;
    VaRange {
        start,
        end: end.max(start),
    }
}

impl<S: System> Pmap<S> {
    /// Frees the leaf tables of the slots in `range` that are empty. One flush for 64.
    pub(crate) fn trim(&self, range: VaRange) {
        let mut places = self.tree.places(range).filter(is_spare).peekable();
        while places.peek().is_some() {
            self.free_leaves(&mut places, BATCH, Flush::Range(range), |place| {
                let mut locked = self.tree.at(place, place.range).lock_whole();
                let mut empty = locked.parts().filter(|part| part.is_empty());
                empty.next().and_then(|part| self.unlink(part))
            });
        }
    }

    /// Frees the leaf tables that `unlink` takes away from slots of `places`, after one `flush`: at
    /// most `wanted` of them, or [`BATCH`]. Returns their number.
    pub(super) fn free_leaves<'a>(
        &'a self,
        places: &mut impl Iterator<Item = Place<'a, S>>,
        wanted: usize,
        flush: Flush,
        unlink: impl Fn(Place<'a, S>) -> Option<Frame>,
    ) -> usize {
        debug_assert!(wanted > 0, "no table is asked for");
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
            .for_each(|&at| self.vm.free(at, Content::Zeroed));
        count
    }

    /// Takes the leaf table away from a slot that is held and has no entry, if it has one. It
    /// may be freed when it is flushed; until then a walker finds nothing in it.
    pub(super) fn unlink(&self, mut part: Part<'_, S>) -> Option<Frame> {
        if !part.is_vacant() {
            return None;
        }
        let leaf = part.leaf().get()?;
        self.free_pv_tables(&mut part);
        // AcqRel: as where entries are removed.
        let old = self.superpage(part.range().start).swap(0, Ordering::AcqRel);
        debug_assert_eq!(
            old,
            superpage::table(Table::of(leaf)),
            "the table was not in use"
        );
        part.inside().leaf = Table::NONE;
        Some(leaf)
    }
}

impl<S: System> Pmap<S> {
    /// Frees about `wanted` leaf tables that can be made again, and returns their number. If it is
    /// less than `wanted`, no more are left. O(slots). The caller holds no lock.
    pub(super) fn sweep_tables(&self, wanted: usize) -> usize {
        // Relaxed: another sweep may begin at the same place.
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

    /// Returns true if a slot may have a table that can be made again, as of a moment ago.
    fn may_spare(&self, place: &Place<'_, S>) -> bool {
        place.level == 0 && only_objects(place) && self.has_leaf(place.range.start)
    }

    /// Takes the table away from a slot of level 0 if it can be made again. It may be freed when
    /// it is flushed.
    fn take_leaf(&self, place: Place<'_, S>) -> Option<Frame> {
        let mut removal = self.removal();
        removal.lock(place, place.range).ok()?;
        if !only_objects(&place) || removal.locked.parts().any(|part| is_locked(&part)) {
            return None;
        }
        removal.pages();
        let part = removal.locked.parts().next()?;
        self.unlink(part)
    }
}

/// Returns true if a slot may have a table that it does not need.
fn is_spare<S: System>(place: &Place<'_, S>) -> bool {
    place.level == 0 && place.slot.is_empty() && place.slot.is_vacant()
}

/// Returns true if all entries of a slot name pages of objects. Exact under its lock.
fn only_objects<S: System>(place: &Place<'_, S>) -> bool {
    place.slot.count(Kind::Private) + place.slot.count(Kind::Swapped) == 0
}

/// Returns true if memory mapped here may be locked.
fn is_locked<S: System>(part: &Part<'_, S>) -> bool {
    let mut is_locked = false;
    part.for_each(|mapped| is_locked |= mapped.flags.has(Flags::LOCKED));
    is_locked && !part.is_vacant()
}

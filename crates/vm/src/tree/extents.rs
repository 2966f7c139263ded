//! The mappings in a slot of level 0 that is not uniform: an ordered map of extents.
//!
//! A sorted vector: a lookup is O(log n), a change O(n) by a memory move (an extent is
//! 32 bytes, and 512 pages bound their number). Room for a change is made before it
//! begins, so a change that has begun cannot fail.

use super::extent::{Attributes, Extent};
use crate::error::Error;
use crate::system::System;
use alloc::vec::Vec;
use machine::VaRange;

/// The extents of a slot, in order, none overlapping; neighbours that could be one
/// are one.
pub(super) struct Extents<S: System> {
    sorted: Vec<Extent<S>>,
}

impl<S: System> Extents<S> {
    /// No extents.
    #[inline]
    pub(super) const fn new() -> Self {
        Extents { sorted: Vec::new() }
    }

    #[inline]
    pub(super) fn all(&self) -> &[Extent<S>] {
        &self.sorted
    }

    #[inline]
    pub(super) fn all_mut(&mut self) -> &mut [Extent<S>] {
        &mut self.sorted
    }

    /// Returns true if there is one extent, and that lies in `range`.
    #[inline]
    pub(super) fn is_only(&self, range: VaRange) -> bool {
        match self.sorted.as_slice() {
            [one] => range.start <= one.range.start && one.range.end <= range.end,
            _ => false,
        }
    }

    /// Forgets all extents; their room stays.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.sorted.is_empty() {
            self.sorted.clear();
        }
    }

    /// Takes the only extent out; its room stays.
    pub(super) fn pop(&mut self) -> Option<Extent<S>> {
        debug_assert_eq!(self.sorted.len(), 1, "an extent of several is taken");
        self.sorted.pop()
    }

    /// Adds the first extent, where there was none. There must be room.
    #[inline]
    pub(super) fn start(&mut self, extent: Extent<S>) {
        debug_assert!(self.sorted.is_empty(), "a uniform slot has no extents");
        debug_assert!(self.has_room(), "no room was made for an extent");
        self.sorted.push(extent);
    }

    /// The extents that end above `address`.
    #[inline]
    pub(super) fn from(&self, address: usize) -> &[Extent<S>] {
        &self.sorted[self.first_ending_after(address)..]
    }

    /// Makes room for `changes` changes. A change adds two extents at most. There is room for one
    /// extent more.
    pub(super) fn make_room(&mut self, changes: usize) -> Result<(), Error> {
        const {
            assert!(size_of::<Extent<S>>() == 32);
        }
        Ok(self.sorted.try_reserve(2 * changes + 1)?)
    }

    /// Replaces all extents in `range` by one with `new`, or by none. There must be room.
    pub(super) fn replace(&mut self, range: VaRange, new: Option<Attributes<S>>) {
        let (first, last) = self.isolate(range);
        debug_assert!(
            self.sorted[first..last]
                .iter()
                .all(|extent| extent.range.common(range) == extent.range),
            "extents outside of {range:?} are replaced"
        );
        let Some(attributes) = new else {
            self.sorted.drain(first..last);
            // Nothing can be joined across a hole.
            debug_assert!(self.is_sound_around(first, first), "extents out of order");
            return;
        };
        let extent = Extent { range, attributes };
        match self.sorted[first..last].first_mut() {
            Some(place) => {
                *place = extent;
                self.sorted.drain(first + 1..last);
            }
            None => {
                debug_assert!(self.has_room(), "no room was made for an extent");
                self.sorted.insert(first, extent)
            }
        }
        self.join(first, first + 1);
    }

    /// Splits the extents that reach over the ends of `range`; returns the indices of those in it.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn isolate(&mut self, range: VaRange) -> (usize, usize) {
        let mut first = self.first_ending_after(range.start);
        first += usize::from(self.split(first, range.start));
        let within = |extent: &&Extent<S>| extent.range.end <= range.end;
        let count = self.sorted[first..].iter().take_while(within).count();
        let last = first + count;
        (first, last + usize::from(self.split(last, range.end)))
    }

    /// Makes `range`, which lies in the only extent, an extent of its own; returns its index.
    #[inline]
    pub(super) fn isolate_only(&mut self, range: VaRange) -> usize {
        debug_assert!(
            matches!(&*self.sorted, [only] if only.range.common(range) == range),
            "{range:?} is no part of the only extent"
        );
        let first = usize::from(self.split(0, range.start));
        self.split(first, range.end);
        first
    }

    /// Splits the extent at `index` in two, if it reaches over `address`. Returns true if it does.
    #[inline]
    fn split(&mut self, index: usize, address: usize) -> bool {
        let has_room = self.has_room();
        let Some(extent) = self.sorted.get_mut(index) else {
            return false;
        };
        if extent.range.start >= address || address >= extent.range.end {
            return false;
        }
        debug_assert!(has_room, "no room was made for a split");
        let mut rest = extent.clone();
        rest.range.start = address;
        extent.range.end = address;
        self.sorted.insert(index + 1, rest);
        true
    }

    /// Joins neighbours among the extents `first .. last` and the next one on each side.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn join(&mut self, first: usize, last: usize) {
        // From the right, so that indices to the left stay.
        let mut right = last.min(self.sorted.len().saturating_sub(1));
        while right > 0 && right >= first {
            if let [before, after] = &self.sorted[right - 1..=right]
                && before.range.end == after.range.start
                && before.attributes == after.attributes
            {
                self.join_with_next(right - 1);
            }
            right -= 1;
        }
        debug_assert!(
            self.is_sound_around(first, last),
            "extents overlap, or could be one"
        );
    }

    /// Returns true if there is room for one more extent.
    fn has_room(&self) -> bool {
        self.sorted.len() < self.sorted.capacity()
    }

    /// Returns true if all extents lie in `slot`, as they are in order.
    pub(super) fn lie_in(&self, slot: VaRange) -> bool {
        let ends = (self.sorted.first(), self.sorted.last());
        let (Some(first), Some(last)) = ends else {
            return true;
        };
        slot.start <= first.range.start && last.range.end <= slot.end
    }

    /// Returns true if the extents `first .. last` and the next one on each side are not empty, are
    /// in order, do not overlap and cannot be joined.
    fn is_sound_around(&self, first: usize, last: usize) -> bool {
        let from = first.saturating_sub(1).min(self.sorted.len());
        let to = (last + 1).clamp(from, self.sorted.len());
        let near = &self.sorted[from..to];
        let are_apart = |pair: &[Extent<S>; 2]| {
            let [before, after] = pair;
            before.range.end < after.range.start
                || before.range.end == after.range.start && before.attributes != after.attributes
        };
        near.iter()
            .all(|extent| extent.range.start < extent.range.end)
            && near.array_windows().all(are_apart)
    }

    #[inline]
    fn join_with_next(&mut self, index: usize) {
        let next = self.sorted.remove(index + 1);
        self.sorted[index].range.end = next.range.end;
    }

    /// The index of the first extent that ends above `address`.
    fn first_ending_after(&self, address: usize) -> usize {
        self.sorted.partition_point(|e| e.range.end <= address)
    }
}

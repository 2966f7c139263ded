//! What is mapped in a slot of level 0 that is not uniform: an ordered map of regions.
//!
//! A sorted vector: a lookup is O(log n), a change O(n) by a memory move (a region is
//! 24 bytes, and 512 pages bound their number). Room for a change is made before it
//! begins, so a change that has begun can not fail.

use super::extent::Rights;
use crate::error::{Error, Resource};
use crate::prot::Prot;
use alloc::vec::Vec;
use machine::VaRange;

/// A run of addresses with the same rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it is.
    pub range: VaRange,
    /// What tasks may do there.
    pub prot: Prot,
    /// Whether swap space is reserved for its pages.
    pub charged: bool,
}

impl Region {
    /// What fills a place that nobody reads.
    const NOWHERE: Region = Region {
        range: VaRange { start: 0, end: 0 },
        prot: Prot::NONE,
        charged: false,
    };

    pub(super) fn new(range: VaRange, rights: Rights) -> Self {
        let Rights { prot, charged } = rights;
        Region {
            range,
            prot,
            charged,
        }
    }

    pub(super) fn rights(&self) -> Rights {
        Rights {
            prot: self.prot,
            charged: self.charged,
        }
    }

    /// What of it lies in `range`, with which it overlaps.
    pub(super) fn cut_to(&self, range: VaRange) -> Region {
        self.cut(
            self.range.start.max(range.start),
            self.range.end.min(range.end),
        )
    }

    /// Makes this region and `next`, which begins where it ends, one if they are alike.
    pub(crate) fn absorb(&mut self, next: &Region) -> bool {
        let one = self.range.end == next.range.start && self.rights() == next.rights();
        if one {
            self.range.end = next.range.end;
        }
        one
    }

    fn cut(&self, start: usize, end: usize) -> Region {
        Region {
            range: VaRange { start, end },
            ..*self
        }
    }
}

/// The regions of a slot, in order, none overlapping; neighbours that could be one
/// are one.
#[derive(Default)]
pub(super) struct Regions {
    sorted: Vec<Region>,
}

impl Regions {
    pub(super) fn all(&self) -> &[Region] {
        &self.sorted
    }

    /// Forgets all regions; their room stays.
    pub(super) fn clear(&mut self) {
        self.sorted.clear();
    }

    /// The regions that overlap `range`.
    pub(super) fn overlapping(&self, range: VaRange) -> &[Region] {
        let first = self.first_ending_after(range.start);
        let last = self.sorted.partition_point(|r| r.range.start < range.end);
        &self.sorted[first..last.max(first)]
    }

    /// Makes room for one [`Regions::replace`], which adds two regions at most, and for
    /// one region that was not there before.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.sorted
            .try_reserve(3)
            .map_err(|_| Error::OutOfMemory(Resource::Heap))
    }

    /// Puts `new` (which covers `range`, or nothing) in the place of all that was in
    /// `range`, and joins neighbours. There must be room.
    pub(super) fn replace(&mut self, range: VaRange, new: Option<Region>) {
        let first = self.first_ending_after(range.start);
        let last = self.sorted.partition_point(|r| r.range.start < range.end);
        let last = last.max(first);
        let (mut before, mut after) = (None, None);
        if let [head, ..] = &self.sorted[first..last]
            && head.range.start < range.start
        {
            before = Some(head.cut(head.range.start, range.start));
        }
        if let [.., tail] = &self.sorted[first..last]
            && tail.range.end > range.end
        {
            after = Some(tail.cut(range.end, tail.range.end));
        }
        let mut pieces = [Region::NOWHERE; 3];
        let mut count = 0;
        for piece in [before, new, after].into_iter().flatten() {
            pieces[count] = piece;
            count += 1;
        }
        // As a slice, whose length is known: then nothing is collected on the heap.
        self.sorted
            .splice(first..last, pieces[..count].iter().copied());
        // From the right, so that indices to the left stay.
        for right in (first..=first + count).rev() {
            self.join(right);
        }
    }

    /// Joins the region at `right` with the one before it, if they could be one.
    fn join(&mut self, right: usize) {
        if right == 0 || right >= self.sorted.len() {
            return;
        }
        let next = self.sorted[right];
        if self.sorted[right - 1].absorb(&next) {
            self.sorted.remove(right);
        }
    }

    /// The index of the first region that ends above `address`.
    fn first_ending_after(&self, address: usize) -> usize {
        self.sorted.partition_point(|r| r.range.end <= address)
    }
}

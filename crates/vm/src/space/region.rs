//! What is mapped where: an ordered map of regions.
//!
//! A sorted vector: a lookup is O(log n), a change O(n) by a memory move (a region is
//! 24 bytes). Room for a change is made before it begins, so a change that has begun
//! can not fail.

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

/// The regions of a space, in order, none overlapping; neighbours that could be one
/// are one.
#[derive(Default)]
pub(super) struct Regions {
    sorted: Vec<Region>,
}

impl Regions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.sorted.iter()
    }

    /// The region that holds `address`.
    pub(super) fn find(&self, address: usize) -> Option<&Region> {
        let region = self.sorted.get(self.first_ending_after(address))?;
        region.range.contains(address).then_some(region)
    }

    /// The regions that overlap `range`.
    pub(super) fn overlapping(&self, range: VaRange) -> &[Region] {
        let first = self.first_ending_after(range.start);
        let last = self.sorted.partition_point(|r| r.range.start < range.end);
        &self.sorted[first..last.max(first)]
    }

    /// Whether all of `range` is mapped; else where it is not.
    pub(super) fn covers(&self, range: VaRange) -> Result<(), Error> {
        let mut covered_to = range.start;
        for region in self.overlapping(range) {
            if region.range.start > covered_to {
                break;
            }
            covered_to = region.range.end;
        }
        if covered_to < range.end {
            let address = covered_to;
            return Err(Error::NotMapped { address });
        }
        Ok(())
    }

    /// The first gap of `bytes` at or above `from`, below `to`. O(regions above `from`).
    pub(super) fn gap(&self, from: usize, to: usize, bytes: usize) -> Option<usize> {
        let mut start = from;
        for region in &self.sorted[self.first_ending_after(from)..] {
            if region.range.start >= start && region.range.start - start >= bytes {
                break;
            }
            start = region.range.end;
        }
        (start <= to && to - start >= bytes).then_some(start)
    }

    /// Makes room for one [`Regions::replace`]: it adds two regions at most.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        self.sorted
            .try_reserve(2)
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
        let pieces = [before, new, after].into_iter().flatten();
        self.sorted.splice(first..last, pieces.clone());
        let count = pieces.count();
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
        let (a, b) = (self.sorted[right - 1], self.sorted[right]);
        if a.range.end == b.range.start && a.prot == b.prot && a.charged == b.charged {
            self.sorted[right - 1].range.end = b.range.end;
            self.sorted.remove(right);
        }
    }

    /// The index of the first region that ends above `address`.
    fn first_ending_after(&self, address: usize) -> usize {
        self.sorted.partition_point(|r| r.range.end <= address)
    }
}

impl Region {
    fn cut(&self, start: usize, end: usize) -> Region {
        Region {
            range: VaRange { start, end },
            ..*self
        }
    }

    /// Pages of `range` in this region that are charged.
    pub(super) fn charged_in(&self, range: VaRange) -> u64 {
        let start = self.range.start.max(range.start);
        let end = self.range.end.min(range.end);
        if self.charged {
            VaRange { start, end }.pages() as u64
        } else {
            0
        }
    }
}

//! The frames that exist: those the machine hands over, which may have holes.

use crate::error::Error;
use crate::heap::push;
use alloc::vec::Vec;
use core::ops::Range;
use machine::{Frame, Memory};

/// The frames that the VM has, as ascending ranges.
pub(super) struct Map {
    ranges: Vec<Section>,
    /// One above the highest.
    end: usize,
    total: usize,
}

/// A range of frames, and the number of frames before it.
struct Section {
    frames: Range<usize>,
    before: usize,
}

impl Map {
    /// The frames that `machine` hands over.
    ///
    /// # Errors
    /// If the ranges do not ascend, lie beyond the end, or have no room on the kernel's heap.
    pub(super) fn of<M: Memory>(machine: &M) -> Result<Self, Error> {
        let mut map = Map {
            ranges: Vec::new(),
            end: 0,
            total: 0,
        };
        let limit = machine.frame_end().min(u32::MAX as usize);
        let mut added = Ok(());
        machine.usable(&mut |frames| {
            let frames = frames.start as usize..frames.end as usize;
            added = added.and_then(|()| map.add(frames, limit));
        });
        added.map(|()| map)
    }

    fn add(&mut self, frames: Range<usize>, limit: usize) -> Result<(), Error> {
        if frames.start < self.end || frames.end > limit {
            let reason = "the machine's memory map is out of order";
            return Err(Error::Invalid { reason });
        }
        if frames.is_empty() {
            return Ok(());
        }
        let before = self.total;
        self.end = frames.end;
        self.total += frames.len();
        push(&mut self.ranges, Section { frames, before })
    }

    /// One above the highest frame's number.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// The number of frames.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The frames of `part` that exist, ascending.
    pub(super) fn within(
        &self,
        part: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = Range<usize>> {
        let first = self
            .ranges
            .partition_point(|it| it.frames.end <= part.start);
        let past = self.ranges.partition_point(|it| it.frames.start < part.end);
        let common =
            move |it: &Section| it.frames.start.max(part.start)..it.frames.end.min(part.end);
        self.ranges[first..past.max(first)].iter().map(common)
    }

    /// The frame at a place among all frames. O(log ranges).
    pub(super) fn nth(&self, place: usize) -> Frame {
        debug_assert!(place < self.total, "there is no frame {place}");
        let after = self.ranges.partition_point(|it| it.before <= place);
        let part = &self.ranges[after - 1];
        Frame((part.frames.start + place - part.before) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::{Hosted, Options};
    use machine::PAGE_SIZE;
    use std::vec::Vec;

    fn map(frames: usize, reserved: &[Range<u32>]) -> Map {
        let machine = Hosted::with_options(Options {
            reserved: reserved.to_vec(),
            ..Options::new(1, frames * PAGE_SIZE)
        });
        Map::of(&machine.expect("memory")).expect("a map")
    }

    #[test]
    fn holes_are_left_out() {
        let map = map(100, &[0..3, 10..20, 20..21, 99..100]);
        assert_eq!((map.end(), map.total()), (99, 100 - 3 - 11 - 1));
        let within = |part| map.within(part).collect::<Vec<_>>();
        assert_eq!(within(0..100), [3..10, 21..99]);
        assert_eq!(within(9..22), [9..10, 21..22]);
        assert!(within(10..21).is_empty());
        assert!(within(0..3).is_empty());
        let all: Vec<_> = (0..map.total())
            .map(|place| map.nth(place).index())
            .collect();
        assert_eq!(all, (3..10).chain(21..99).collect::<Vec<_>>());
    }

    #[test]
    fn a_map_out_of_order_is_refused() {
        let mut map = map(100, &[]);
        for (frames, fits) in [
            (99..120, false),
            (100..100, true),
            (100..120, true),
            (120..500, false),
        ] {
            assert_eq!(map.add(frames.clone(), 400).is_ok(), fits, "{frames:?}");
        }
    }

    #[test]
    fn no_memory_at_all() {
        let map = map(0, &[]);
        assert_eq!((map.end(), map.total()), (0, 0));
        assert_eq!(map.within(0..10).count(), 0);
    }
}

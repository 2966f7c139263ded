//! Names of memory ranges.

use crate::arena::offset_of;
use crate::engine::Engine;
use std::collections::BTreeMap;

/// Names of ranges in the window.
#[derive(Default)]
pub(crate) struct Labels {
    /// The names by first byte and then length: of ranges with the same first byte the longest
    /// comes last.
    ranges: BTreeMap<(usize, usize), &'static str>,
    /// The length of the longest range.
    longest: usize,
}

impl Labels {
    /// The smallest range that overlaps the line at `offset`: its name, and the offset in it at
    /// which the line begins.
    pub(crate) fn of_line(&self, offset: usize) -> Option<(&'static str, usize)> {
        let from = (offset.saturating_sub(self.longest), 0);
        let near = self.ranges.range(from..(offset + 64, 0));
        let overlapping = near.filter(|((start, bytes), _)| start + bytes > offset);
        let smallest = overlapping.min_by_key(|((_, bytes), _)| *bytes)?;
        let ((start, _), what) = smallest;
        Some((what, offset.saturating_sub(*start)))
    }
}

impl Engine {
    pub(crate) fn label(&mut self, address: usize, bytes: usize, what: &'static str) {
        self.labels.longest = self.labels.longest.max(bytes);
        self.labels.ranges.insert((offset_of(address), bytes), what);
    }
}

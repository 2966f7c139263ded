//! Iteration over slots, without a lock.

use super::{ALL, FAN_OUT, Place, Slot, TOP, Tree, shift, span};
use crate::system::System;
use core::iter;
use machine::VaRange;

/// The slots without nodes that overlap a range, in order, as of the moment the walk reaches them.
pub(crate) struct Places<'a, S: System> {
    tree: &'a Tree<S>,
    /// The node that the walk is in, whose slots are of this level.
    node: &'a [Slot<S>],
    level: u32,
    /// The rest of the range.
    range: VaRange,
}

impl<S: System> Tree<S> {
    /// The slots without nodes that overlap `range`, in order, none of them locked.
    #[inline]
    pub(crate) fn places(&self, range: VaRange) -> Places<'_, S> {
        debug_assert!(range.end <= ALL.end, "{range:?} has no slots");
        Places {
            tree: self,
            node: &self.roots,
            level: TOP,
            range,
        }
    }

    /// The slots without nodes that overlap `range` and in which something is mapped, in order,
    /// none of them locked.
    pub(crate) fn occupied(&self, range: VaRange) -> impl Iterator<Item = Place<'_, S>> {
        let mut places = self.places(range);
        iter::from_fn(move || places.next_occupied())
    }
}

impl<'a, S: System> Places<'a, S> {
    /// Goes back to `at`, in the last slot, which has got a node.
    #[cold]
    pub(super) fn back_to(&mut self, at: usize) {
        debug_assert!(at < self.range.start, "{at:#x} is ahead");
        self.range.start = at;
    }

    /// The next slot in which something is mapped.
    #[inline]
    pub(super) fn next_occupied(&mut self) -> Option<Place<'a, S>> {
        if self.range.start < self.range.end {
            self.skip_empty();
        }
        self.next()
    }

    /// Goes on with the first slot that is not empty.
    #[inline(never)]
    fn skip_empty(&mut self) {
        while self.range.start < self.range.end {
            let first = self.descend();
            if !self.node[first].is_empty() {
                return;
            }
            let rest = &self.node[first..];
            let count = Slot::count_empty(rest);
            let start = self.range.start & !(span(self.level) - 1);
            self.range.start = start + count * span(self.level);
            if rest.get(count).is_some_and(|slot| slot.child().is_none()) {
                return;
            }
        }
    }

    /// Returns the slot that the walk is at, and moves on behind it.
    #[inline]
    fn step(&mut self) -> Place<'a, S> {
        let index = self.descend();
        let span = span(self.level);
        let range = VaRange::sized(self.range.start & !(span - 1), span);
        self.range.start = range.end;
        Place {
            slot: &self.node[index],
            level: self.level,
            range,
        }
    }

    /// Goes down to the slot without a node that the walk is at, and returns its index in its node.
    #[inline]
    fn descend(&mut self) -> usize {
        let at = self.range.start;
        let mut index = at >> shift(self.level) & (FAN_OUT - 1);
        if index == 0 {
            // The last node is over.
            (self.node, self.level) = (&self.tree.roots, TOP);
            index = at >> shift(TOP);
        }
        while let Some(node) = self.node[index].child() {
            (self.node, self.level) = (node, self.level - 1);
            index = at >> shift(self.level) & (FAN_OUT - 1);
        }
        index
    }
}

impl<'a, S: System> Iterator for Places<'a, S> {
    type Item = Place<'a, S>;

    #[inline]
    fn next(&mut self) -> Option<Place<'a, S>> {
        (self.range.start < self.range.end).then(|| self.step())
    }
}

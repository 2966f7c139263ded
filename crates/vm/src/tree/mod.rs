//! The map of an address space: a radix tree of slots, each a cache line and a lock.
//!
//! Slots of level 0 cover 2 MiB, as a leaf table of the hardware does, and a slot of
//! each further level 64 of the level below: 128 MiB, 8 GiB, 512 GiB, 32 TiB. A slot
//! becomes a node of smaller ones when an operation concerns a part of it only.
//!
//! # Protocol
//! - Nodes stay until the tree is dropped, so a descent takes no lock and writes
//!   nothing: an acquire load in each slot on the way.
//! - The slots that have no node have the mappings. An operation locks all of these in
//!   its range, in ascending order, and holds them to its end ([`lock::Lock`]): so it is
//!   atomic, and two of them cannot wait for each other.
//! - Walks over the whole tree, from slot to slot, may share a slot that they only read
//!   ([`coupled`]); an operation waits until they have gone on.
//! - A slot above level 0 that the range covers only in part is locked, subdivided, released and
//!   descended into. That changes no mapping, so an operation may fail after it.
//! - An operation that has locked a slot checks again for a node below it: if there is one, the
//!   slot has no mappings any more, and the operation continues below.
//! - A range within one empty slot above level 0 is known to be a hole without a lock:
//!   there is an instant at which the slot was empty and not subdivided.
//!
//! # Cost
//! Operations on different 2 MiB write no common line. An operation takes a lock for each 2 MiB of
//! its range where the tree is subdivided, and one for each larger slot. The tree takes 4 KiB of
//! kernel memory for each 128 MiB, 8 GiB, 512 GiB and 32 TiB ever subdivided, until the space goes.

mod coupled;
mod extent;
mod extents;
mod lock;
mod locked;
mod part;
mod parts;
mod places;
mod run;
mod slot;
mod state;

pub(crate) use extent::{Attributes, Mapped};
use lock::{Watch, lock, unlock};
pub(crate) use locked::{Holding, Locked, Two};
pub(crate) use part::Part;
pub(crate) use slot::{Kind, Slot};
pub(crate) use state::{Likely, Size};

use crate::error::Error;
use crate::system::System;
use core::array;
use machine::{Atomics, VaRange, pte};
use slot::{FAN_OUT, FAN_OUT_SHIFT};
use state::State;

/// log2 of the bytes that a slot of level 0 covers.
const BASE_SHIFT: u32 = 21;
/// The level of the root's slots.
const TOP: u32 = 4;
/// The root's slots: all of the lower half.
const ROOTS: usize = pte::USER_END >> shift(TOP);

/// All addresses of a tree.
pub(crate) const ALL: VaRange = VaRange {
    start: 0,
    end: pte::USER_END,
};

/// The tree of a space's mappings.
pub(crate) struct Tree<S: System> {
    roots: [Slot<S>; ROOTS],
}

/// A slot without a node, and its addresses.
pub(crate) struct Place<'a, S: System> {
    pub(crate) slot: &'a Slot<S>,
    pub(crate) level: u32,
    /// The addresses that the slot covers.
    pub(crate) range: VaRange,
}

impl<S: System> Clone for Place<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S: System> Copy for Place<'_, S> {}

impl<'a, S: System> Place<'a, S> {
    /// The slot of level 0 that covers `address`.
    pub(crate) fn small(slot: &'a Slot<S>, address: usize) -> Self {
        Place::new(slot, 0, address)
    }

    /// The slot of this level that covers `address`.
    #[inline]
    fn new(slot: &'a Slot<S>, level: u32, address: usize) -> Self {
        debug_assert!(address < pte::USER_END, "no slot covers {address:#x}");
        let span = span(level);
        Place {
            slot,
            level,
            range: VaRange::sized(address & !(span - 1), span),
        }
    }

    /// Returns true if nothing is mapped in a range that begins here.
    #[inline]
    pub(crate) fn is_hole(&self, range: VaRange) -> bool {
        debug_assert!(
            self.range.contains(range.start),
            "{range:?} begins in another slot"
        );
        self.level > 0 && range.end <= self.range.end && self.slot.is_empty()
    }

    /// Fails if `range`, which begins here, is known to be a hole.
    #[inline]
    pub(crate) fn refuse_hole(&self, range: VaRange) -> Result<(), Error> {
        let address = range.start;
        if self.is_hole(range) {
            Err(Error::NotMapped { address })
        } else {
            Ok(())
        }
    }
}

impl<S: System> Tree<S> {
    /// A tree without mappings.
    pub(crate) fn new() -> Self {
        Tree {
            roots: array::from_fn(|_| Slot::new()),
        }
    }

    /// Labels the memory of the root's slots, which do not move from now on.
    pub(crate) fn label(&self) {
        let roots = self.roots.as_ptr().cast();
        S::Machine::label(roots, size_of_val(&self.roots), "Slot");
    }

    /// The slot without a node that covers `address`, as of a moment ago. O(levels).
    ///
    /// # Panics
    /// If `address` is not in [`ALL`].
    #[inline]
    pub(crate) fn find(&self, address: usize) -> Place<'_, S> {
        let mut slot = &self.roots[address >> shift(TOP)];
        // A fixed number of steps: the loop is unrolled.
        for level in (0..TOP).rev() {
            let Some(node) = slot.child() else {
                return Place::new(slot, level + 1, address);
            };
            slot = &node[(address >> shift(level)) % FAN_OUT];
        }
        Place::new(slot, 0, address)
    }

    /// The place that covers the address, if it is of level 0: the shortest descent, for faults.
    #[inline]
    pub(crate) fn find_small(&self, address: usize) -> Option<Place<'_, S>> {
        let place = self.find(address);
        (place.level == 0).then_some(place)
    }

    /// Returns true if `range` was one empty slot above level 0, or within one, at an instant
    /// during the call. (False does not mean that something is mapped there.)
    pub(crate) fn is_hole(&self, range: VaRange) -> bool {
        self.find(range.start).is_hole(range)
    }

    /// The end of the last mapping found in `range`, perhaps only of a part of that mapping; `None`
    /// if there is none. `place` was found at the range's start. Holds one lock at a time, and none
    /// where nothing is mapped in parts.
    #[inline]
    pub(crate) fn obstacle(&self, place: Place<'_, S>, range: VaRange) -> Option<usize> {
        debug_assert!(
            place.range.contains(range.start) && range.start < range.end,
            "{range:?} is not at its place"
        );
        if range.end <= place.range.end && place.slot.is_empty() {
            None
        } else {
            self.obstacle_among(range)
        }
    }

    /// The end of the last mapping that was found in `range`, which lies in several slots or in one
    /// that is not empty.
    #[inline(never)]
    fn obstacle_among(&self, range: VaRange) -> Option<usize> {
        let found = |place: Place<'_, S>| match place.slot.state() {
            State::Empty => None,
            State::Whole => Some(place.range.end),
            State::Parts => {
                debug_assert_eq!(place.level, 0, "only small slots are mapped in parts");
                let range = range.common(place.range);
                self.at(place, range).lock_whole().last_end()
            }
            // Another task has divided it since the walk reached it; once its lock is free, the
            // node is published.
            State::Divided => {
                unlock(place.slot, lock(place.slot, Watch::Unwatched));
                let range = range.common(place.range);
                self.obstacle(self.find(range.start), range)
            }
        };
        self.places(range).filter_map(found).last()
    }

    /// The number of pages present, as of a moment ago. O(slots).
    pub(crate) fn resident(&self) -> usize {
        self.places(ALL).map(|place| place.slot.resident()).sum()
    }
}

/// log2 of the bytes that a slot of `level` covers.
const fn shift(level: u32) -> u32 {
    BASE_SHIFT + FAN_OUT_SHIFT * level
}

/// Bytes that a slot of `level` covers.
const fn span(level: u32) -> usize {
    1 << shift(level)
}

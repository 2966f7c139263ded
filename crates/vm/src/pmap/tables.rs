//! Page tables: how they are found, made and freed.
//!
//! A leaf table belongs to the slot that covers the same 2 MiB, and it and the entry
//! that leads to it change under the slot's lock. The tables above belong to no slot: an
//! entry that leads to one is made by compare-and-swap. These tables stay as long as the pmap, so
//! no CPU can find one that is freed, and a CPU that needs no new table writes no cache line of
//! another's.

use super::Pmap;
use crate::error::Error;
use crate::frames::Content;
use crate::system::System;
use machine::{Atomic, Atomics, Frame, Memory, Ordering, pte};

/// The flags of an entry that leads to a table. Marked accessed, so that walkers
/// only read it.
pub(super) const TABLE: u64 = pte::PRESENT | pte::WRITABLE | pte::USER | pte::ACCESSED;

/// Tables below the root on the way to an address.
const BELOW: usize = pte::LEVELS as usize - 1;

impl<S: System> Pmap<S> {
    /// The entry at `address` in `table`, a table of `level`.
    pub(super) fn entry(
        &self,
        table: Frame,
        level: u32,
        address: usize,
    ) -> &<S::Machine as Atomics>::AtomicU64 {
        debug_assert!(
            address < pte::USER_END && level < pte::LEVELS,
            "no table of level {level} has an entry for {address:#x}"
        );
        let index = pte::index(address, level);
        // SAFETY: callers name tables of this pmap, which stay as the module says; all that reach
        // an entry do so by this word.
        unsafe { self.vm.machine().word(table, index) }
    }

    /// Makes the table of level `lowest` (0 or 1) on the way to `address`, under the lock of its
    /// slot; a leaf table only if the slot has none. Without memory for all the missing tables,
    /// none is made.
    #[cold]
    pub(super) fn grow(&self, address: usize, lowest: u32) -> Result<Frame, Error> {
        debug_assert!(lowest <= 1, "leaf tables, and those above, are made");
        let mut fresh = [None; BELOW];
        for index in 0..self.missing(address, lowest) {
            match self.vm.allocate_table() {
                Ok(frame) => fresh[index] = Some(frame),
                Err(error) => {
                    self.free_fresh(&fresh);
                    return Err(error);
                }
            }
        }
        let mut table = self.root;
        for level in (lowest + 1..pte::LEVELS).rev() {
            table = self.step(table, level, address, &mut fresh);
        }
        // Other tasks may have made tables for which there are frames here.
        self.free_fresh(&fresh);
        Ok(table)
    }

    /// Returns true if there was a leaf table for `address` a moment ago.
    pub(super) fn has_leaf(&self, address: usize) -> bool {
        self.missing(address, 0) == 0
    }

    /// The number of tables that are missing on the way to `address`, down to level `lowest`.
    fn missing(&self, address: usize, lowest: u32) -> usize {
        let mut table = self.root;
        for level in (lowest + 1..pte::LEVELS).rev() {
            match self.below(table, level, address) {
                Some(below) => table = below,
                None => return (level - lowest) as usize,
            }
        }
        0
    }

    /// The table below `table` on the way to `address`.
    pub(super) fn below(&self, table: Frame, level: u32, address: usize) -> Option<Frame> {
        // Acquire: pairs with the release in `step`.
        let entry = self.entry(table, level, address).load(Ordering::Acquire);
        (entry & pte::PRESENT != 0).then(|| pte::frame(entry))
    }

    /// The table below `table` on the way to `address`; if there is none, makes it of a `fresh`
    /// frame.
    fn step(&self, table: Frame, level: u32, address: usize, fresh: &mut [Option<Frame>]) -> Frame {
        if let Some(below) = self.below(table, level, address) {
            return below;
        }
        // Tables never go, so no more are missing now than were counted.
        let next = fresh.iter_mut().find_map(Option::take);
        let next = next.expect("a frame for each missing table");
        // Release: a CPU that finds the table, a walker too, finds it zeroed.
        match self.entry(table, level, address).compare_exchange(
            0,
            next.address() | TABLE,
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => next,
            Err(theirs) => {
                self.vm.free(next, Content::Zeroed);
                pte::frame(theirs)
            }
        }
    }

    fn free_fresh(&self, fresh: &[Option<Frame>]) {
        for &frame in fresh.iter().flatten() {
            self.vm.free(frame, Content::Zeroed);
        }
    }

    /// Frees all tables, and the PV tables of the slots. No other task has the pmap, no page is
    /// mapped, and no TLB or walker knows the tables any more.
    pub(super) fn free_tables(&mut self) {
        self.free_below(self.root, pte::LEVELS - 1, 0);
        // The kernel's entries are still in it.
        let content = match self.vm.kernel() {
            Some(_) => Content::Any,
            None => Content::Zeroed,
        };
        self.vm.free(self.root, content);
    }

    /// Frees the PV tables of the slot at `address`.
    fn free_pv_tables_at(&self, address: usize) {
        let place = self.tree.find(address);
        let mut locked = self.tree.at(place, place.range).lock_whole();
        for mut part in locked.parts() {
            self.free_pv_tables(&mut part);
        }
    }

    /// Frees everything below `table`, whose first entry is for `start`, and leaves it all zero,
    /// except for the kernel's entries of a root.
    fn free_below(&self, table: Frame, level: u32, start: usize) {
        let mut first = 0;
        let machine = self.vm.machine();
        let end = match level + 1 {
            pte::LEVELS => pte::USER_ENTRIES,
            _ => pte::ENTRIES,
        };
        // SAFETY: a table of this pmap, and no other task has that.
        let find = |first| unsafe { machine.find_word(table, first, end, pte::PRESENT) };
        // SAFETY: as above.
        let word = |index| unsafe { machine.word(table, index) };
        while let Some((index, entry)) = find(first) {
            debug_assert!(level >= 1, "pages are not freed with their tables");
            debug_assert!(entry & pte::HUGE == 0, "a superpage stays in the table");
            let (below, at) = (pte::frame(entry), start + index * pte::span(level));
            match level {
                1 => self.free_pv_tables_at(at),
                _ => self.free_below(below, level - 1, at),
            }
            word(index).store(0, Ordering::Relaxed);
            self.vm.free(below, Content::Zeroed);
            first = index + 1;
        }
    }
}

//! Page tables: finding, growing and pruning them. All under the pmap's lock.

use super::Pmap;
use super::flush::Gather;
use crate::error::Error;
use crate::frames::Content;
use crate::policy::Policies;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte};

/// What an entry that leads to a table looks like.
const TABLE: u64 = pte::PRESENT | pte::WRITABLE | pte::USER | pte::ACCESSED;

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// The entry at `address` in `table`, a table of `level`.
    pub(super) fn entry(&self, table: Frame, level: u32, address: usize) -> &M::AtomicU64 {
        let index = pte::index(address, level);
        self.vm.machine().word(table, index)
    }

    /// The table below `table` on the way to `address`.
    fn below(&self, table: Frame, level: u32, address: usize) -> Option<Frame> {
        // Relaxed: entries that lead to tables change under the pmap's lock only.
        let entry = self.entry(table, level, address).load(Ordering::Relaxed);
        (entry & pte::PRESENT != 0).then(|| pte::frame(entry))
    }

    /// The leaf table that covers `address`.
    pub(super) fn leaf(&self, address: usize) -> Option<Frame> {
        let mut levels = (1..pte::LEVELS).rev();
        levels.try_fold(self.root, |table, level| self.below(table, level, address))
    }

    /// The first leaf table that covers addresses from `address` to `end`, and the
    /// first of these.
    ///
    /// Gaps are passed over in the table that has them, an entry a step, so an empty
    /// range costs one step for each 2 MiB in a populated GiB, and less elsewhere.
    fn next_leaf(&self, mut address: usize, end: usize) -> Option<(usize, Frame)> {
        'from_root: while address < end {
            let mut table = self.root;
            for level in (1..pte::LEVELS).rev() {
                let first = pte::index(address, level);
                let span = pte::span(level);
                // Not beyond `end` in this table either.
                let last = (end - 1 - (address & !(span - 1))) / span + first;
                let past = pte::ENTRIES.min(last + 1);
                let machine = self.vm.machine();
                let present = machine.find_word(table, first, past, pte::PRESENT);
                let Some((index, entry)) = present else {
                    // Nothing more in this table: on with what the next one covers.
                    address = (address & !(span * pte::ENTRIES - 1)) + span * pte::ENTRIES;
                    continue 'from_root;
                };
                if index > first {
                    address = (address & !(span - 1)) + (index - first) * span;
                }
                table = pte::frame(entry);
            }
            return Some((address, table));
        }
        None
    }

    /// The leaf table that covers `address`, made if need be. Without memory for all
    /// the tables it takes, none is made.
    pub(super) fn grow(&self, address: usize) -> Result<Frame, Error> {
        let mut table = self.root;
        let mut level = pte::LEVELS - 1;
        while level > 0
            && let Some(below) = self.below(table, level, address)
        {
            table = below;
            level -= 1;
        }
        let mut fresh = [None; pte::LEVELS as usize - 1];
        for index in 0..level as usize {
            match self.vm.allocate(Content::Zeroed) {
                Ok(frame) => fresh[index] = Some(frame),
                Err(error) => {
                    let made = fresh.iter().flatten();
                    made.for_each(|&frame| self.vm.free(frame, true));
                    return Err(error);
                }
            }
        }
        for frame in fresh.into_iter().flatten() {
            // Release: the walker that finds the table finds it zeroed.
            self.entry(table, level, address)
                .store(frame.address() | TABLE, Ordering::Release);
            self.vm.page(table).entry_added();
            table = frame;
            level -= 1;
        }
        Ok(table)
    }

    /// An entry of the leaf table at `address` has gone: takes away the tables that
    /// are empty now, to be freed when they are flushed. Says whether the leaf is one.
    pub(super) fn prune(&self, address: usize, gather: &mut Gather) -> bool {
        let mut path = [self.root; pte::LEVELS as usize];
        for level in (1..pte::LEVELS).rev() {
            let below = self.below(path[level as usize], level, address);
            path[level as usize - 1] = below.expect("the way to a mapping is there");
        }
        for level in 0..pte::LEVELS as usize - 1 {
            if !self.vm.page(path[level]).entry_removed() {
                return level > 0;
            }
            self.entry(path[level + 1], level as u32 + 1, address)
                .store(0, Ordering::Relaxed);
            gather.table(path[level]);
        }
        // The root stays, however empty; it only counts.
        let _ = self.vm.page(self.root).entry_removed();
        true
    }

    /// Calls `visit` for each address in `range` that has an entry, with that entry;
    /// it answers whether it has pruned the entry's table, which is then left alone.
    pub(super) fn for_each_entry(
        &self,
        range: VaRange,
        mut visit: impl FnMut(usize, &M::AtomicU64) -> bool,
    ) {
        let mut address = range.start;
        while let Some((first, table)) = self.next_leaf(address, range.end) {
            let end = ((first | (pte::span(1) - 1)) + 1).min(range.end);
            address = first;
            while address < end {
                let entry = self.entry(table, 0, address);
                let present = entry.load(Ordering::Relaxed) & pte::PRESENT != 0;
                let pruned = present && visit(address, entry);
                address = if pruned { end } else { address + PAGE_SIZE };
            }
        }
    }
}

//! Moving pages to other addresses of the space.

use super::Pmap;
use super::entry::Entry;
use super::flush::Gather;
use crate::error::Error;
use crate::policy::Policies;
use crate::tree::{Part, Two};
use core::ptr;
use machine::{Flush, PAGE_SIZE, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gets the memory that it takes to move the pages of `from` to `to`, which is as long;
    /// both are locked, and `to` has slots of its own for the pages
    /// ([`Pmap::has_slots_for`]). After an error nothing has changed.
    pub(crate) fn prepare_move(
        &self,
        locked: &Two<'_, M, P>,
        from: VaRange,
        to: VaRange,
    ) -> Result<(), Error> {
        let prepared = self.tree.parts_of(locked, to).try_for_each(|mut part| {
            let at = part.range().start - to.start + from.start;
            let source = VaRange::sized(at, part.range().len());
            let pages = self.tree.parts_of(locked, source).map(|part| {
                let mut counts = (0, 0);
                for (_, bits) in self.used(part.leaf(), part.range()) {
                    counts.0 += 1;
                    counts.1 += usize::from(matches!(Entry::decode(bits), Entry::Page { .. }));
                }
                counts
            });
            let (used, mapped) = pages.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            if used > 0 {
                self.prepare_leaf(&mut part)?;
                // What is in the swap space is on no list; a chunk without entries would stay.
                self.prepare_many(&mut part, mapped)?;
            }
            Ok(())
        });
        if prepared.is_err() {
            for mut part in self.tree.parts_of(locked, to) {
                self.trim_chunks(&mut part);
                let range = part.slot_range();
                if let Some(table) = self.unlink(part) {
                    self.flush(Flush::Range(range));
                    self.vm.free(table, true);
                }
            }
        }
        prepared
    }

    /// Whether each page of `from` that is to move to `to` finds a slot of 2 MiB there; both are
    /// locked. Larger slots have no table.
    pub(crate) fn has_slots_for(&self, locked: &Two<'_, M, P>, from: VaRange, to: VaRange) -> bool {
        self.tree.parts_of(locked, to).all(|part| {
            let at = part.range().start - to.start + from.start;
            let source = VaRange::sized(at, part.range().len());
            part.is_smallest()
                || self
                    .tree
                    .parts_of(locked, source)
                    .all(|part| part.is_vacant())
        })
    }

    /// Sees to it that [`Pmap::has_slots_for`] is so, while nobody brings pages.
    pub(crate) fn make_slots_for(&self, from: VaRange, to: VaRange) -> Result<(), Error> {
        for place in self.tree.places(from) {
            if place.level > 0 || place.slot.is_vacant() {
                continue;
            }
            let source = place.range.common(from);
            let first = VaRange::sized(source.start - from.start + to.start, PAGE_SIZE);
            let last = VaRange::sized(source.end - from.start + to.start - PAGE_SIZE, PAGE_SIZE);
            // A part of a slot is locked in a slot of the smallest size.
            drop(self.tree.lock(first)?);
            drop(self.tree.lock(last)?);
        }
        Ok(())
    }

    /// Moves what `from` has to `to`, which has nothing. It is prepared. When it returns, no
    /// CPU reaches the pages at their old addresses.
    ///
    /// A page stays on some mapping's list all the time, so nobody takes it for unmapped:
    /// no delayed invalidation.
    pub(crate) fn move_pages(&self, locked: &Two<'_, M, P>, from: VaRange, to: VaRange) {
        let mut gather = Gather::new();
        for mut part in self.tree.parts_of(locked, from) {
            let range = part.range();
            self.split(&mut part);
            for (address, bits) in self.used(part.leaf(), range) {
                let at = address - from.start + to.start;
                let page = VaRange::sized(at, PAGE_SIZE);
                for mut target in self.tree.parts_of(locked, page) {
                    self.move_page(&mut part, address, &mut target, bits);
                }
                gather.touch(address);
            }
        }
        self.settle(&mut gather);
        // What is in the swap space takes no PV entry.
        for mut part in self.tree.parts_of(locked, to) {
            self.trim_chunks(&mut part);
        }
    }

    /// Moves the entry at `address` of `part` to the start of `target`.
    fn move_page(
        &self,
        part: &mut Part<'_, M, P>,
        address: usize,
        target: &mut Part<'_, M, P>,
        bits: u64,
    ) {
        let Entry::Page { frame, .. } = Entry::decode(bits) else {
            let old = self.clear(part, address, 0);
            return self.write(target, old);
        };
        // SAFETY: the target's lock is held, and there is room.
        let pv = unsafe {
            let at = target.range().start;
            target.inside().chunks.take(at)
        };
        let mut list = self.vm.page(frame).lock_pv();
        let old_pv = list.find(ptr::from_ref(part.slot()).cast(), address);
        let old_pv = old_pv.expect("a mapping has a PV entry");
        let old = self.clear(part, address, 0);
        // SAFETY: one is fresh, the other just found on this list.
        unsafe {
            list.insert(pv);
            list.remove(old_pv);
        }
        drop(list);
        self.write(target, old);
        self.free_pv(part, old_pv);
    }
}

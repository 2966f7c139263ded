//! Moving pages to other addresses of the space.

use super::Pmap;
use super::entry::Entry;
use super::flush::Gather;
use super::kin::is_kin;
use crate::error::Error;
use crate::pv::PvTables;
use crate::system::System;
use crate::tree::{Kind, Part, Two};
use machine::{PAGE_SIZE, VaRange, pte};

impl<S: System> Pmap<S> {
    /// Gets the memory needed to move the pages of `from` to `to`, which is as long;
    /// both are locked, and `from` is owned ([`Pmap::own_used`]). After an error nothing has
    /// changed.
    pub(crate) fn prepare_move(
        &self,
        locked: &Two<'_, S>,
        from: VaRange,
        to: VaRange,
    ) -> Result<(), Error> {
        debug_assert_eq!(from.len(), to.len(), "pages keep their distances");
        // Up to here all is prepared.
        let mut ready = to.start;
        for part in locked.parts_of(from) {
            for (address, bits) in self.used(part.leaf(), part.range()) {
                let at = address - from.start + to.start;
                if at < ready {
                    continue;
                }
                let page = VaRange::sized(at, PAGE_SIZE);
                for mut target in locked.parts_of(page) {
                    match Entry::decode(bits) {
                        Entry::Page { kind, .. } if self.is_listed(kind) => {
                            self.prepare(&mut target)?;
                            ready = (at + 1).next_multiple_of(PvTables::SPAN);
                        }
                        _ => drop(self.prepare_leaf(&mut target)?),
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves the pages of `from` to `to`, which is prepared and has none. When it returns, no CPU
    /// reaches the pages at their old addresses.
    ///
    /// A page stays on a list all the time, so no task finds it unmapped: no delayed invalidation.
    /// An unlisted mapping moves if the object still shows its page ([`super::attached`]).
    pub(crate) fn move_pages(&self, locked: &Two<'_, S>, from: VaRange, to: VaRange) {
        debug_assert_eq!(from.len(), to.len(), "pages keep their distances");
        debug_assert!(
            from.common(to).start == from.common(to).end,
            "pages move to {to:?}, which is a part of {from:?}"
        );
        let mut gather = Gather::new();
        for mut part in locked.parts_of(from) {
            let range = part.range();
            self.split(&mut part);
            for (address, bits) in self.used(part.leaf(), range) {
                let at = address - from.start + to.start;
                let page = VaRange::sized(at, PAGE_SIZE);
                for mut target in locked.parts_of(page) {
                    self.move_page(&mut part, address, &mut target, bits, &mut gather);
                }
                gather.touch(address);
                if gather.is_full() {
                    self.settle(&mut gather);
                }
            }
        }
        self.settle(&mut gather);
    }

    /// Moves the entry at `address` of `part` to the start of `target`.
    fn move_page(
        &self,
        part: &mut Part<'_, S>,
        address: usize,
        target: &mut Part<'_, S>,
        bits: u64,
        gather: &mut Gather,
    ) {
        if is_kin(bits) {
            self.be_own(part, address);
        }
        machine::invariant!(
            S::Machine: self.bits_at(target) == 0,
            "something is mapped where a page goes"
        );
        let frame = match Entry::decode(bits) {
            Entry::Page { frame, kind, .. } if self.is_listed(kind) => frame,
            Entry::Page { frame, .. } => {
                let old = self.clear(part, address, 0);
                let at = part.again(VaRange::sized(address, PAGE_SIZE));
                if self.still_shows(&at, frame) {
                    self.write(target, old);
                } else if old & pte::DIRTY != 0 {
                    gather.dirty_page(address, frame);
                }
                return;
            }
            Entry::Empty | Entry::Swapped(_) => {
                let old = self.clear(part, address, 0);
                return self.write(target, old);
            }
        };
        let mut list = self.vm.lock_pv(frame);
        let old = self.clear(part, address, 0);
        self.check_list(&list, old);
        // SAFETY: `list` is that of the page, which is mapped at `address`.
        unsafe { self.relist(&mut list, part, address, target) };
        drop(list);
        self.write(target, old);
    }

    /// Removes the private pages of `range`, which is locked, including swapped ones. The slots
    /// have tables of their own.
    pub(crate) fn drop_copies(&self, two: &Two<'_, S>, range: VaRange) {
        for mut part in two.parts_of(range) {
            for (address, bits) in self.used(part.leaf(), part.range()) {
                let mut page = part.cut(VaRange::sized(address, PAGE_SIZE));
                match Entry::decode(bits) {
                    Entry::Page {
                        kind: Kind::Private,
                        ..
                    } => self.undo(&mut page),
                    Entry::Swapped(slot) => {
                        self.forget_slot(&mut page);
                        self.vm.release_swapped(slot);
                    }
                    Entry::Page { .. } | Entry::Empty => {}
                }
            }
        }
    }
}

//! Pages that their owner has given up and may yet keep (`madvise` with `MADV_FREE`).
//!
//! Such a page has [`Page::LAZY`] and is clean: its entry is not marked dirty, no TLB knows it as
//! dirty, and the page has no [`Page::DIRTY`]. Reading it changes nothing; a store marks the entry
//! dirty, and the mark reaches the page when the entry is cleared. So a reclaimer that finds the
//! page clean may forget it, and the next access finds zeroes.
//!
//! # Protocol
//! - **give up** ([`Pmap::give_up`]): under the lock of the slot, and the page's PV lock: if the
//!   mapping has the only reference of a private page, take the dirty marks from entry and page,
//!   and set the flag. Flush before the slot is released: a store that comes later marks the entry
//!   anew. (A store in between comes before the call has returned, and may be lost.)
//! - **forget** ([`Pmap::forget`]): under both locks; if no other task has come to map or hold the
//!   page, and page and entry are clean, exchange the entry for nothing. A walker that is about to
//!   mark it finds it gone, and faults.
//! - A task clears the flag with the first dirty mark that it takes from the page or finds, since
//!   no other task learns from that mark that the page was written; and when the page gets a slot
//!   of the swap space.
//!
//! A superpage has one dirty mark for all its pages, so they can all be given up together and stay
//! a superpage; a reclaimer demotes it.
//!
//! A fork leaves the flag: neither side writes that page any more, but each writes a copy. As long
//! as there are two mappings, the page is treated as any other, since one of them may be clean and
//! the other dirty; when only one is left, all dirty marks have reached the page.

use super::flush::Gather;
use super::{Entry, Pmap, entry};
use crate::page::{Identity, Page, PvList};
use crate::system::System;
use crate::tree::{Kind, Locked, Part};
use machine::{AtomicInt, Ordering, PAGE_SIZE, VaRange, pte};

impl<S: System> Pmap<S> {
    /// Gives up the private pages of the locked range that are mapped nowhere else, for
    /// reclaimers to forget unless a task writes them; pages in the swap space are gone at
    /// once. A table that a fork has shared stays as it is.
    ///
    /// No delayed invalidation: the PV entries stay.
    pub(crate) fn give_up(&self, locked: &mut Locked<'_, S>) {
        let mut gather = Gather::new();
        for mut part in locked.parts() {
            // Pages of a shared table are also those of other spaces, so this space cannot give
            // them up.
            if part.is_vacant() || !self.own_alone(&mut part) {
                continue;
            }
            if self.give_up_superpage(&part) {
                gather.touch(part.range().start);
                continue;
            }
            self.demote(&mut part);
            for (address, bits) in self.used(part.leaf(), part.range()) {
                match Entry::decode(bits) {
                    Entry::Swapped(slot) => {
                        self.clear(&mut part, address, 0);
                        self.vm.release_swapped(slot);
                    }
                    Entry::Page {
                        kind: Kind::Private,
                        ..
                    } => {
                        if self.give_up_page(&part, address, bits) {
                            gather.touch(address);
                        }
                    }
                    Entry::Page { .. } | Entry::Empty => {}
                }
            }
        }
        self.settle(&mut gather);
    }

    /// Gives up the page that is mapped at `address` of `part` by these `bits`, if it is mapped
    /// nowhere else. Returns true if TLBs may know it as dirty.
    fn give_up_page(&self, part: &Part<'_, S>, address: usize, bits: u64) -> bool {
        let frame = pte::frame(bits);
        let page = self.vm.page(frame);
        let mut list = self.vm.lock_pv(frame);
        if !self.is_only(&part.again(VaRange::sized(address, PAGE_SIZE)), bits) {
            return false;
        }
        debug_assert!(
            entry::kind(bits) == Kind::Private,
            "an object's page is given up"
        );
        let leaf = part.leaf().get().expect("a mapping has a table");
        let marks = pte::ACCESSED | pte::DIRTY;
        // AcqRel: with the walker's exchange, as in `clear`.
        let old = self
            .entry(leaf, 0, address)
            .fetch_and(!marks, Ordering::AcqRel);
        list.take_flags(Page::<S>::harvest(marks));
        list.set_flags(Page::<S>::LAZY);
        page.set_age(0);
        old & pte::DIRTY != 0
    }

    /// Removes the mapping at the start of `part` with its reference, if its page is given up and
    /// no task but the caller, which holds it, has written, mapped or held it since. Returns true
    /// if it did. The mapping is no superpage's, and the page's list is locked.
    pub(super) fn forget(&self, part: &mut Part<'_, S>, list: &mut PvList<'_, S>) -> bool {
        let bits = self.bits_at(part);
        if bits & pte::PRESENT == 0 {
            return false;
        }
        self.check_list(list, bits);
        let (page, machine) = (self.vm.page(pte::frame(bits)), self.vm.machine());
        let is_alone = list.iter(machine).nth(1).is_none() && self.has_alone(part, bits);
        // The references of the mapping and of the caller.
        let is_alone = is_alone && page.references() == 2;
        if !is_alone || page.identity() != Identity::Private {
            return false;
        }
        let lazy = Page::<S>::LAZY;
        let dirty = Page::<S>::DIRTY;
        let at = part.range().start;
        if page.flags() & (lazy | dirty) != lazy || !self.clear_clean(part, at) {
            list.take_flags(lazy);
            return false;
        }
        self.drop_listed(part, list, bits);
        true
    }
}

//! Removal of the mappings of a range: the pmap's part of munmap.

use super::entry::{self, Entry};
use super::flush::Gather;
use super::kin::is_kin;
use super::{Pass, Pmap, PmapGuard};
use crate::error::Error;
use crate::page::{Last, Page, PvList};
use crate::system::{Invalidation, Seldom, System};
use crate::tree::{Kind, Locked, Mapped, Part, Place, Size};
use machine::{Atomic, Frame, Ordering, VaRange, pte};

type Block<'a, S> =
    <<S as System>::Invalidation as Invalidation<<S as System>::Machine>>::Block<'a>;

/// A range that is locked for the removal of its pages.
///
/// The fields are dropped in this order: the slots, the pmap, the block.
pub(crate) struct Removal<'a, S: System> {
    pmap: &'a Pmap<S>,
    pub(crate) locked: Locked<'a, S>,
    lock: Option<PmapGuard<'a, S>>,
    /// Open from before the locks if a task may sleep in it, otherwise while pages are removed.
    block: Seldom<Block<'a, S>>,
}

impl<S: System> Pmap<S> {
    /// Unmaps whatever is mapped in `range`, and drops its references. When it
    /// returns, no CPU can reach the pages any more.
    ///
    /// Locks one slot at a time. O(pages mapped + slots); one flush for each 128 pages,
    /// and one a slot. An error if there is no memory to take pages from a part of a slot whose
    /// table a fork has shared; then the slots before that one are done.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the pmap is a space's, or `range` is not one of whole pages of tasks;
    /// [`Error::OutOfMemory`].
    pub fn remove(&self, range: VaRange) -> Result<(), Error> {
        self.check(range)?;
        self.remove_slots(range, |removal| removal.pages())
    }

    /// Removes the mappings that are `wanted`.
    pub(crate) fn remove_where(
        &self,
        range: VaRange,
        wanted: impl Fn(Mapped<'_, S>) -> bool,
    ) -> Result<(), Error> {
        self.remove_slots(range, |removal| removal.pages_where(&wanted))
    }

    fn remove_slots(
        &self,
        range: VaRange,
        remove: impl Fn(&mut Removal<'_, S>),
    ) -> Result<(), Error> {
        for place in self.tree.places(range) {
            // Also slots that look vacant: a task may be sending a page to the swap space, or a
            // fault may be copying a page.
            if place.level == 0 {
                let mut removal = self.removal();
                removal.lock(place, range.common(place.range))?;
                remove(&mut removal);
            }
        }
        Ok(())
    }

    /// A removal for which nothing is locked yet. [`Removal::lock`] is a step of its own: a call
    /// that returned the locked removal would copy it, and an munmap would take 7 % more
    /// instructions.
    #[inline]
    pub(crate) fn removal(&self) -> Removal<'_, S> {
        Removal {
            pmap: self,
            locked: Locked::none(&self.tree),
            lock: None,
            block: Seldom::NONE,
        }
    }
}

impl<'a, S: System> Removal<'a, S> {
    /// Opens a block if it must be opened before locks are taken, and locks `range`; the caller has
    /// found `place` at its start. In place, as [`Locked::lock`]. After an error the caller drops
    /// the removal.
    #[track_caller]
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn lock(&mut self, place: Place<'a, S>, range: VaRange) -> Result<(), Error> {
        let invalidation = self.pmap.vm.invalidation();
        let eager = invalidation.may_sleep();
        // Unsynchronised, as in FreeBSD: pages of a concurrent fault show below.
        let mut open = eager && self.pmap.resident() != 0;
        loop {
            if open {
                self.block = Seldom::some(invalidation.begin());
            }
            debug_assert!(
                eager || self.block.is_none(),
                "a task waits for slots in a block"
            );
            self.lock = Some(self.pmap.lock_tables());
            self.locked.lock(self.pmap.tree.at(place, range))?;
            self.own_parts()?;
            if open || !eager || !self.has_pages() {
                return Ok(());
            }
            open = true;
            self.release();
        }
    }

    /// Releases all locks, in the order of a drop.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.locked = Locked::none(&self.pmap.tree);
        self.lock = None;
        self.block.end();
    }
}

impl<'a, S: System> Removal<'a, S> {
    /// Removes all pages of the range. When it returns, no CPU can reach them.
    #[inline]
    pub(crate) fn pages(&mut self) {
        if self.has_pages() {
            self.pages_of_parts();
        }
    }

    #[inline(never)]
    fn pages_of_parts(&mut self) {
        let mut gather = Gather::new();
        self.clear(&mut gather);
        self.flush(&mut gather);
        self.free(&mut gather);
    }

    /// Returns true if the range may have a page.
    #[inline]
    pub(crate) fn has_pages(&mut self) -> bool {
        self.locked.any(|part| !part.is_vacant())
    }

    /// Clears the entries of all pages of the range, and takes them off their pages' lists. Flushes
    /// and frees each batch that is full; the last one is left in `gather`.
    #[inline]
    pub(crate) fn clear(&mut self, gather: &mut Gather) {
        let is_shared = |part: &Part<'_, S>| !part.is_vacant() && part.size() == Size::Shared;
        if self.locked.any(is_shared) {
            self.pmap.leave_slots(&mut self.locked);
        }
        self.clear_where(gather, |part, clear| clear(part.range()));
    }

    /// Flushes the gathered pages from all TLBs that may have them. Then no removal by the reverse
    /// map need wait any more.
    #[inline]
    pub(crate) fn flush(&mut self, gather: &mut Gather) {
        let mut clearing = Clearing {
            pmap: self.pmap,
            block: &mut self.block,
            gather,
        };
        clearing.flush();
    }

    /// Frees the gathered pages, which are flushed.
    #[inline]
    pub(crate) fn free(&mut self, gather: &mut Gather) {
        self.pmap.free_gathered(gather);
        self.pmap.trim_chunks();
    }

    /// Gets tables of their own for the slots that lose entries of a part only. After an error
    /// nothing has changed.
    #[inline]
    fn own_parts(&mut self) -> Result<(), Error> {
        let pmap = self.pmap;
        self.locked.parts().try_each(|mut part| {
            if part.is_all() {
                Ok(())
            } else {
                pmap.own_used(&mut part)
            }
        })
    }

    /// Removes the pages of the `wanted` mappings.
    fn pages_where(&mut self, wanted: impl Fn(Mapped<'_, S>) -> bool) {
        if !self.has_pages() {
            return;
        }
        let mut gather = Gather::new();
        self.clear_where(&mut gather, |part, clear| {
            part.for_each(|mapped| {
                let range = mapped.range;
                if wanted(mapped) {
                    clear(range);
                }
            });
        });
        self.flush(&mut gather);
        self.free(&mut gather);
    }

    /// Clears the ranges that `choose` gives of each part.
    #[inline]
    fn clear_where(
        &mut self,
        gather: &mut Gather,
        choose: impl Fn(&Part<'_, S>, &mut dyn FnMut(VaRange)),
    ) {
        let mut clearing = Clearing {
            pmap: self.pmap,
            block: &mut self.block,
            gather,
        };
        self.locked.parts().each(|part| {
            if !part.is_vacant() {
                choose(&part, &mut |range| clearing.pages(part.again(range)));
            }
        });
    }
}

/// Pages that are being removed: cleared and unlisted, and not flushed yet.
///
/// The block is open while something is gathered. If a task may not sleep in a block
/// ([`Invalidation::may_sleep`]), it only tries the locks that it would have to wait for. If that
/// fails it *settles* first: it flushes, ends the block, frees, and then waits, with nothing under
/// way that a removal by the reverse map would wait for.
pub(super) struct Clearing<'t, 'a, S: System> {
    pub(super) pmap: &'a Pmap<S>,
    block: &'t mut Option<Block<'a, S>>,
    gather: &'t mut Gather,
}

impl<'a, S: System> Clearing<'_, 'a, S> {
    /// Clears the entries of `part`.
    fn pages(&mut self, mut part: Part<'_, S>) {
        if part.size() == Size::Superpage && part.is_all() {
            return self.superpage(&mut part);
        }
        if matches!(part.size(), Size::Run | Size::Superpage) {
            self.prepare_to_sleep();
            self.pmap.split(&mut part);
        }
        if part.slot().count(Kind::Swapped) > 0 {
            self.prepare_to_sleep();
            self.pmap.take_swapped(&mut part);
        }
        let passes = self.pmap.vm.passes();
        if !self.pass(&mut part, Pass::number(1, passes)) {
            self.pass_again(&mut part, passes);
        }
    }

    /// Clears the entries of `part` that a pass has left out.
    #[cold]
    fn pass_again(&mut self, part: &mut Part<'_, S>, passes: u32) {
        let mut more = 2..=passes;
        let _ = more.any(|pass| self.pass(part, Pass::number(pass, passes)));
    }

    /// Clears the entries of `part`, without those of pages whose lists are locked, unless the
    /// `pass` waits. Returns true if none is left.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn pass(&mut self, part: &mut Part<'_, S>, pass: Pass) -> bool {
        let has_short_paths = self.pmap.vm.has_short_paths();
        let (mut last, mut are_all, mut own) = (None, true, 0);
        for (address, bits) in self.pmap.used_in(part) {
            let (kind, frame) = (entry::kind(bits), pte::frame(bits));
            if is_kin(bits) {
                self.kin_page(part, address);
                continue;
            }
            if has_short_paths && kind == Kind::Private && self.own_page(part, address, frame) {
                own += 1;
                continue;
            }
            if !self.pmap.is_listed(kind) {
                self.attached_page(part, address);
                continue;
            }
            let list = match pass {
                Pass::Waits => Some(self.lock(last.take(), frame)),
                Pass::Tries => self.try_lock(last.take(), frame),
            };
            match list {
                Some(list) => last = self.page(part, address, frame, list),
                None => are_all = false,
            }
        }
        if own > 0 {
            part.add(Kind::Private, -own);
        }
        are_all
    }

    /// Clears the entry at `address`, which maps the private page in `frame`, if the mapping has
    /// the page's only reference. Returns true if it did; then the caller counts the entry.
    ///
    /// Such a page is *frozen* first, and no task finds it any more: one that looks by the reverse
    /// map, or by the page's slot of the swap space, gets no reference. So its list, with the only
    /// entry, is left as it is, without its lock, until another page begins in the frame; and
    /// nobody waits for the flush, so no block is opened for it.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn own_page(&mut self, part: &Part<'_, S>, address: usize, frame: Frame) -> bool {
        let pmap = self.pmap;
        if !pmap.vm.page(frame).freeze(1) {
            return false;
        }
        machine::invariant!(
            S::Machine: part.size() == Size::Pages,
            "an entry is cleared in a table of {:?} pages", part.size()
        );
        let leaf = part.leaf().get().expect("a mapping has a table");
        // AcqRel: as in `Pmap::clear`.
        let old = pmap.entry(leaf, 0, address).swap(0, Ordering::AcqRel);
        debug_assert!(
            pte::frame(old) == frame && entry::kind(old) == Kind::Private,
            "another page was mapped than was found"
        );
        if self.gather.frozen_page(address, frame) {
            self.settle();
        }
        true
    }

    /// Clears the entry at `address`, which maps an inherited page; it is let go of after the flush
    /// ([`super::kin`]).
    fn kin_page(&mut self, part: &mut Part<'_, S>, address: usize) {
        let old = self.pmap.clear(part, address, 0);
        debug_assert!(is_kin(old), "the page is the slot's own");
        let frame = pte::frame(old);
        let flags = Page::<S>::harvest(old);
        if old & pte::DIRTY != 0 {
            // Until the flush a store may mark no entry: a task that takes the flag waits for the
            // block.
            let mut list = self.lock(None, frame);
            list.set_flags(flags);
            self.note(frame, list.page());
        } else {
            self.add_flags(frame, flags);
        }
        if self.gather.kin_page(address, frame) {
            self.settle();
        }
    }

    /// Clears the entry at `address`, which maps a page of an object and is on no list. The page
    /// stays at least until the slot is released ([`super::attached`]), so no block is opened for
    /// it.
    fn attached_page(&mut self, part: &mut Part<'_, S>, address: usize) {
        let old = self.pmap.clear(part, address, 0);
        debug_assert!(
            entry::kind(old) == Kind::Object,
            "the page may be on a list"
        );
        let frame = pte::frame(old);
        if old & pte::DIRTY != 0 {
            self.gather.dirty_page(address, frame);
            return self.settle_if_full();
        }
        self.gather.touch(address);
        let flags = Page::<S>::harvest(old);
        self.add_flags(frame, flags);
    }

    /// Sets `flags` of the page in `frame`, unless they are set already.
    fn add_flags(&mut self, frame: Frame, flags: u8) {
        if flags & !self.pmap.vm.page(frame).flags() != 0 {
            self.lock(None, frame).set_flags(flags);
        }
    }

    /// Clears the entry at `address`, which maps `frame`, and takes its PV entry off the page's
    /// `list`. Between this and the flush the page looks unmapped and is not: the block has it
    /// noted. Returns the list if it is worth keeping for the next page.
    #[inline]
    fn page(
        &mut self,
        part: &mut Part<'_, S>,
        address: usize,
        frame: Frame,
        mut list: PvList<'a, S>,
    ) -> Option<Last<'a, S>> {
        let pmap = self.pmap;
        let old = pmap.clear(part, address, 0);
        pmap.check_list(&list, old);
        debug_assert!(
            pte::frame(old) == frame && !is_kin(old),
            "another page was mapped than was found"
        );
        list.set_flags(Page::<S>::harvest(old));
        self.note(frame, list.page());
        // SAFETY: the mapping's, so it is on this list.
        unsafe { pmap.unlist(&mut list, part, address) };
        self.gather.page(address, frame);
        if self.gather.is_full() {
            drop(list);
            self.settle();
            return None;
        }
        pmap.vm.keep_pv(list, frame)
    }

    /// Locks the page's list, if that needs no waiting.
    #[inline]
    fn try_lock(&mut self, last: Option<Last<'a, S>>, frame: Frame) -> Option<PvList<'a, S>> {
        let vm = &self.pmap.vm;
        vm.pass_pv(last, frame).or_else(|| vm.try_lock_pv(frame))
    }

    /// Locks the list of the page in `frame`.
    #[inline]
    fn lock(&mut self, last: Option<Last<'a, S>>, frame: Frame) -> PvList<'a, S> {
        let vm = &self.pmap.vm;
        let list = vm.pass_pv(last, frame);
        list.unwrap_or_else(|| self.lock_by(|| vm.try_lock_pv(frame), || vm.lock_pv(frame)))
    }

    /// Acquires by `lock`, which may sleep. In a block in which the task may not sleep it acquires
    /// by `try_lock`, or settles first.
    #[inline]
    pub(super) fn lock_by<L>(
        &mut self,
        try_lock: impl FnOnce() -> Option<L>,
        lock: impl FnOnce() -> L,
    ) -> L {
        if self.must_not_sleep() {
            if let Some(locked) = try_lock() {
                return locked;
            }
            self.settle();
        }
        lock()
    }

    /// Settles if the task is in a block in which it may not sleep.
    fn prepare_to_sleep(&mut self) {
        if self.must_not_sleep() {
            self.settle();
        }
    }

    /// Returns true if the task is in a block in which it may not sleep.
    fn must_not_sleep(&self) -> bool {
        self.block.is_some() && !self.pmap.vm.invalidation().may_sleep()
    }

    /// Notes in the block that a mapping of `page`, which is in `frame`, is removed. Under the
    /// page's PV lock.
    #[inline]
    pub(super) fn note(&mut self, frame: Frame, page: &Page<S>) {
        machine::invariant!(
            S::Machine: self.pmap.vm.is_pv_locked(frame),
            "a page is noted under its PV lock"
        );
        let invalidation = self.pmap.vm.invalidation();
        let block = self.block.get_or_insert_with(|| invalidation.begin());
        invalidation.note(block, frame, &page.invalidation);
    }

    /// Gathers a superpage, by its first frame.
    pub(super) fn gather_superpage(&mut self, address: usize, first: Frame) {
        self.gather.superpage(address, first);
        self.settle_if_full();
    }

    #[inline]
    fn settle_if_full(&mut self) {
        if self.gather.is_full() {
            self.settle();
        }
    }

    /// Flushes the gathered pages, and frees them.
    fn settle(&mut self) {
        self.flush();
        self.pmap.free_gathered(self.gather);
    }

    /// Flushes the gathered pages, and ends the block if a task may not sleep in it.
    fn flush(&mut self) {
        self.pmap.flush_gathered(self.gather);
        if !self.pmap.vm.invalidation().may_sleep() {
            *self.block = None;
        }
    }
}

impl<S: System> Pmap<S> {
    /// Releases the slots of the swap space that the entries of `part` name.
    #[cold]
    fn take_swapped(&self, part: &mut Part<'_, S>) {
        for (address, bits) in self.used(part.leaf(), part.range()) {
            if let Entry::Swapped(slot) = Entry::decode(bits) {
                let old = self.clear(part, address, 0);
                debug_assert_eq!(old, bits, "the entry changed under its slot's lock");
                self.vm.release_swapped(slot);
            }
        }
    }
}

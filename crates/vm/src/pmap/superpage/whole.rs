//! Changes of a whole superpage: other rights and giving up, after which it is still one, and
//! removal.

use super::{PvRun, Superpage, USED, frame_at, table};
use crate::flags::Flags;
use crate::frames::Content;
use crate::page::Page;
use crate::pmap::Pmap;
use crate::pmap::flush::Touched;
use crate::pmap::remove::Clearing;
use crate::system::{PageQueues, System};
use crate::tree::{Kind, Part, Size};
use crate::vm::Vm;
use machine::{Atomic, AtomicInt, Frame, Memory, Ordering, PAGE_SIZE, pte};

impl<S: System> Pmap<S> {
    /// Gives the pages of `part` the rights of `flags`, if they are a whole superpage that can have
    /// them. Otherwise demotes the slot, and returns false: then the caller changes the pages'
    /// entries.
    #[inline]
    pub(in crate::pmap) fn protect_superpage(
        &self,
        part: &mut Part<'_, S>,
        flags: Flags,
        touched: &mut Touched,
    ) -> bool {
        // A copy, so that the caller's stays in registers.
        part.size() != Size::Pages
            && self.protect_large(&mut part.cut(part.range()), flags, touched)
    }

    /// Changes the rights of superpages, where there may be some.
    #[inline(never)]
    fn protect_large(&self, part: &mut Part<'_, S>, flags: Flags, touched: &mut Touched) -> bool {
        if !part.is_all() {
            self.split(part);
        } else if part.size() == Size::Superpage {
            let superpage = self.superpage(part.range().start);
            let bits = superpage.load(Ordering::Relaxed);
            let first = pte::frame(bits);
            let ours = |index| self.vm.is_exclusive(frame_at(first, index));
            let prot = flags.prot();
            if !prot.writes() || flags.has(Flags::SHARED) || (0..pte::ENTRIES).all(ours) {
                if self.give_rights(superpage, bits, prot) || self.revocations.are_pending() {
                    // The flush of one page forgets all.
                    touched.page(part.range().start);
                }
                return true;
            }
            self.demote(part);
        }
        false
    }

    /// Gives up the pages of `part` if they are a whole superpage, and no other space has them. It
    /// stays a superpage until a reclaimer takes the first page, and a store to any page keeps them
    /// all. Returns true if it did; then the caller flushes the superpage's translation.
    pub(in crate::pmap) fn give_up_superpage(&self, part: &Part<'_, S>) -> bool {
        if part.size() != Size::Superpage || !part.is_all() {
            return false;
        }
        let first = self.superpage_frame(part);
        let mut run = self.lock_run(first);
        if !(0..pte::ENTRIES).all(|index| self.vm.is_exclusive(frame_at(first, index))) {
            return false;
        }
        // AcqRel: with the walker's exchange, as where it is taken away.
        let superpage = self.superpage(part.range().start);
        superpage.fetch_and(!USED, Ordering::AcqRel);
        // SAFETY: the list is dropped in its round, before the run is.
        while let Some((index, mut list)) = unsafe { run.pop() } {
            list.take_flags(Page::<S>::harvest(USED));
            list.set_flags(Page::<S>::LAZY);
            self.vm.page(frame_at(first, index)).set_age(0);
        }
        true
    }
}

impl<'a, S: System> Clearing<'_, 'a, S> {
    /// Clears the superpage that maps `part`, a whole slot. From now until the flush each page
    /// looks unmapped and is not: the block has it noted.
    pub(in crate::pmap) fn superpage(&mut self, part: &mut Part<'_, S>) {
        let pmap = self.pmap;
        debug_assert!(part.is_all(), "a part of a superpage goes");
        let leaf = part.leaf();
        let start = part.range().start;
        let first = pmap.superpage_frame(part);
        let mut run = self.lock_run(first);
        // No walker reaches the table yet.
        if let Some(leaf) = leaf.get() {
            // SAFETY: the slot's leaf table, and the slot is locked.
            unsafe { pmap.vm.machine().zero(leaf) };
        }
        // AcqRel with the walker's exchange: its marks are seen.
        let old = pmap.superpage(start).swap(table(leaf), Ordering::AcqRel);
        debug_assert!(
            old & pte::HUGE != 0 && pte::frame(old) == first,
            "another superpage was mapped than was found"
        );
        machine::invariant!(
            S::Machine: part.slot().count(Kind::Private) == pte::ENTRIES,
            "a superpage has not all its pages"
        );
        machine::invariant!(
            S::Machine: pmap.is_run_locked(first),
            "a superpage ends under the PV locks of its pages"
        );
        part.set_size(Size::Pages);
        part.add(Kind::Private, -(pte::ENTRIES as i32));
        pmap.count_resident(-(pte::ENTRIES as isize));
        // SAFETY: the list is dropped in its round, before the run is.
        while let Some((index, mut list)) = unsafe { run.pop() } {
            let frame = frame_at(first, index);
            list.set_flags(Page::<S>::harvest(old));
            self.note(frame, list.page());
            let address = start + index * PAGE_SIZE;
            // SAFETY: the mapping's, so it is on this list.
            unsafe { pmap.unlist(&mut list, part, address) };
        }
        drop(run);
        self.gather_superpage(start, first);
    }

    /// Locks the lists of the superpage's pages.
    fn lock_run(&mut self, first: Frame) -> Superpage<'a, S> {
        let pmap = self.pmap;
        let try_lock = || PvRun::try_lock(pmap.pages_from(first), pte::ENTRIES);
        self.lock_by(try_lock, || pmap.lock_run(first))
    }
}

impl<S: System> Vm<S> {
    /// Drops a reference to each page of the block that begins with `first`; pages without another
    /// reference go back to the pool, as a whole block if that is all.
    pub(in crate::pmap) fn release_block(&self, first: Frame) {
        debug_assert!(
            first.index().is_multiple_of(pte::ENTRIES),
            "{first:?} begins no block"
        );
        let pages = || (0..pte::ENTRIES).map(|index| frame_at(first, index));
        let mut freed = [0_u64; pte::ENTRIES / 64];
        for (index, frame) in pages().enumerate() {
            freed[index / 64] |= u64::from(self.page(frame).release()) << (index % 64);
        }
        if freed.iter().all(|&bits| bits == u64::MAX) {
            pages().for_each(|frame| self.queues().remove(frame));
            // SAFETY: the pages of the block had no references but those just dropped.
            return unsafe { self.frames().free_block(self.machine(), first) };
        }
        for (index, frame) in pages().enumerate() {
            if freed[index / 64] & 1 << (index % 64) != 0 {
                self.free_page(frame, Content::Any);
            }
        }
    }
}

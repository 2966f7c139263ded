//! TLB flushes, and the pages that are freed only after one.

use super::Pmap;
use crate::system::System;
use crate::vm::SHARED;
use arrayvec::ArrayVec;
use core::mem;
use machine::{Cpus, Flush, Frame, Mmu, PAGE_SIZE, Pinned, Topology, VaRange, pte};

/// The number of frames gathered before a flush is forced.
const CAPACITY: usize = 128;
/// The number of superpages gathered before a flush is forced.
const SUPERPAGES: usize = 16;

/// The range from the first to the last page whose translation has changed.
pub(super) struct Touched(VaRange);

impl Touched {
    /// No pages.
    pub(super) const NONE: Self = Touched(VaRange {
        start: usize::MAX,
        end: 0,
    });

    /// Adds the page at `address`, whose translation has changed.
    #[inline]
    pub(super) fn page(&mut self, address: usize) {
        debug_assert!(
            address < pte::USER_END && address.is_multiple_of(PAGE_SIZE),
            "{address:#x} is no page's"
        );
        self.0.start = self.0.start.min(address);
        self.0.end = self.0.end.max(address + PAGE_SIZE);
    }

    /// Returns true if there are none.
    fn are_none(&self) -> bool {
        self.0.start >= self.0.end
    }

    /// Takes the range, and leaves none.
    #[inline]
    fn take(&mut self) -> Option<VaRange> {
        let Touched(range) = mem::replace(self, Self::NONE);
        (range.start < range.end).then_some(range)
    }
}

/// Pages that a removal has taken out of the tables but not yet out of the TLBs.
///
/// Other CPUs may still write these frames. [`Pmap::settle`] flushes and frees; a gather must be
/// empty when it is dropped.
pub(crate) struct Gather {
    touched: Touched,
    /// Pages to be released.
    pages: ArrayVec<Frame, CAPACITY>,
    /// Pages of objects that were mapped without being listed, and written.
    dirty: ArrayVec<Frame, CAPACITY>,
    /// Pages without a reference, to be freed.
    frozen: ArrayVec<Frame, CAPACITY>,
    /// Inherited pages to be let go of, and their addresses.
    kin: ArrayVec<(usize, Frame), CAPACITY>,
    /// The first frames of superpages.
    superpages: ArrayVec<Frame, SUPERPAGES>,
}

impl Gather {
    #[inline]
    pub(crate) fn new() -> Self {
        Gather {
            touched: Touched::NONE,
            pages: ArrayVec::new(),
            dirty: ArrayVec::new(),
            frozen: ArrayVec::new(),
            kin: ArrayVec::new(),
            superpages: ArrayVec::new(),
        }
    }

    /// Adds a page that was mapped at `address`.
    #[inline]
    pub(super) fn page(&mut self, address: usize, frame: Frame) {
        self.touch(address);
        self.pages.push(frame);
    }

    /// Adds a page that was mapped at `address`, and has no reference any more. Returns true if the
    /// next such page would not fit.
    #[inline]
    #[must_use]
    pub(super) fn frozen_page(&mut self, address: usize, frame: Frame) -> bool {
        self.touch(address);
        self.frozen.push(frame);
        self.frozen.is_full()
    }

    /// Adds an inherited page that was mapped at `address`. Returns true if the next such page
    /// would not fit.
    #[must_use]
    pub(super) fn kin_page(&mut self, address: usize, frame: Frame) -> bool {
        self.touch(address);
        self.kin.push((address, frame));
        self.kin.is_full()
    }

    /// Adds a superpage that was mapped at `address`, by its first frame.
    pub(super) fn superpage(&mut self, address: usize, first: Frame) {
        debug_assert!(
            address.is_multiple_of(pte::span(1)) && first.index().is_multiple_of(pte::ENTRIES),
            "{first:?} is no superpage's at {address:#x}"
        );
        // The flush of one of its pages drops the whole translation.
        self.touch(address);
        self.superpages.push(first);
    }

    /// Adds an object's page that had an unlisted mapping at `address`, and was written: it becomes
    /// dirty after the flush.
    pub(super) fn dirty_page(&mut self, address: usize, frame: Frame) {
        self.touch(address);
        self.dirty.push(frame);
    }

    /// Adds the page at `address`, whose translation has changed.
    #[inline]
    pub(super) fn touch(&mut self, address: usize) {
        self.touched.page(address);
    }

    /// Returns true if the next page of another kind, or superpage, might not fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.pages.len() + self.dirty.len() == CAPACITY || self.superpages.is_full()
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        debug_assert!(
            self.touched.take().is_none(),
            "gathered pages were not flushed"
        );
    }
}

impl<S: System> Pmap<S> {
    /// Flushes the gathered pages from all TLBs that may have them, then frees them.
    /// Under the locks of their slots.
    pub(super) fn settle(&self, gather: &mut Gather) {
        self.flush_gathered(gather);
        self.free_gathered(gather);
    }

    /// Flushes the gathered pages from all TLBs that may have them.
    #[inline]
    pub(super) fn flush_gathered(&self, gather: &mut Gather) {
        if let Some(range) = gather.touched.take() {
            self.flush(Flush::Range(range));
        }
    }

    /// Frees the gathered pages, which are flushed.
    #[inline]
    pub(super) fn free_gathered(&self, gather: &mut Gather) {
        debug_assert!(
            gather.touched.are_none(),
            "pages are freed that TLBs may know"
        );
        if !gather.frozen.is_empty() {
            self.vm.free_pages(gather.frozen.drain(..));
        }
        if !gather.pages.is_empty() {
            self.vm.release_pages(gather.pages.drain(..));
        }
        if !gather.kin.is_empty() {
            self.free_kin(&mut gather.kin);
        }
        if !gather.superpages.is_empty() || !gather.dirty.is_empty() {
            self.free_others(gather);
        }
    }

    /// Lets go of the gathered inherited pages, slot by slot.
    #[inline(never)]
    fn free_kin(&self, gathered: &mut ArrayVec<(usize, Frame), CAPACITY>) {
        let mut pages = &gathered[..];
        while let [(address, _), ..] = *pages {
            let part = self.tree.held(address);
            let is_here = |&&(address, _): &&(usize, Frame)| part.range().contains(address);
            let (here, rest) = pages.split_at(pages.iter().take_while(is_here).count());
            self.let_go(&part, here);
            pages = rest;
        }
        gathered.clear();
    }

    /// Frees the gathered superpages, and marks pages of objects as dirty.
    #[cold]
    fn free_others(&self, gather: &mut Gather) {
        let superpages = gather.superpages.drain(..);
        superpages.for_each(|first| self.vm.release_block(first));
        let dirty = gather.dirty.drain(..);
        dirty.for_each(|frame| self.note_dirty(frame));
    }

    /// Flushes changed translations, with nothing to be freed, from all TLBs that may have them.
    pub(super) fn flush_touched(&self, mut touched: Touched) {
        if let Some(range) = touched.take() {
            self.flush(Flush::Range(range));
        }
    }

    /// Flushes on every CPU that may use translations of this pmap, and returns when all have. It
    /// interrupts only those: a CPU that translates for another space flushes when it comes back.
    pub(super) fn flush(&self, what: Flush) {
        let (pin, machine) = (S::Machine::pin(), self.vm.machine());
        let own = pin.cpu().index();
        let (has_own, has_others) = self.active.look(machine.cpus(), own);
        if has_others {
            self.flush_others(own, what);
        }
        if !has_own {
            return;
        }
        if self.vm.current().has(own, self.tag) {
            machine.flush_local(self.asid, what)
        } else {
            self.active.mark(own)
        }
    }

    /// Flushes on all CPUs but the calling one, `own`.
    #[inline(never)]
    fn flush_others(&self, own: usize, what: Flush) {
        let (machine, current) = (self.vm.machine(), self.vm.current());
        let always_flush = self.asid == SHARED;
        let others = self
            .active
            .others(current, machine.cpus(), own, self.tag, always_flush);
        if !others.is_empty() {
            machine.shootdown(&others, self.asid, what);
        }
    }

    /// Drops the TLB entries of a pmap that no CPU uses any more, on all CPUs that may have some:
    /// another pmap will get its tag. CPUs that have not left it are in no space from now on.
    pub(super) fn flush_everywhere(&self) {
        let (pin, machine) = (S::Machine::pin(), self.vm.machine());
        let own = pin.cpu().index();
        let (has_own, has_others) = self.active.look(machine.cpus(), own);
        let forget = |cpu| self.vm.current().forget(cpu, self.tag);
        if has_others {
            self.active.all(machine.cpus()).iter().for_each(forget);
        } else if has_own {
            forget(own);
        }
        // A CPU that comes to a space without a tag of its own flushes in any case.
        if self.asid == SHARED {
            return;
        }
        if has_others {
            machine.shootdown(&self.active.all(machine.cpus()), self.asid, Flush::All);
        } else if has_own {
            machine.flush_local(self.asid, Flush::All);
        }
    }
}

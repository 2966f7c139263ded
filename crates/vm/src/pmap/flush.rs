//! Flushing, and the pages to be freed only afterwards.

use super::Pmap;
use crate::policy::System;
use crate::vm::SHARED;
use core::mem::{self, MaybeUninit};
use machine::{Cpus, Flush, Frame, Mmu, PAGE_SIZE, Pinned, Topology, VaRange};

/// Frames gathered before a flush is forced.
const CAPACITY: usize = 128;
/// Superpages gathered before a flush is forced.
const SUPERPAGES: usize = 16;

/// The pages whose translations have changed: from the first to the last.
pub(super) struct Touched(VaRange);

impl Touched {
    /// None.
    pub(super) const NONE: Self = Touched(VaRange {
        start: usize::MAX,
        end: 0,
    });

    /// A page at `address` whose translation changed.
    #[inline]
    pub(super) fn page(&mut self, address: usize) {
        self.0.start = self.0.start.min(address);
        self.0.end = self.0.end.max(address + PAGE_SIZE);
    }

    /// Those pages, and whatever lies between them; none are left.
    #[inline]
    fn take(&mut self) -> Option<VaRange> {
        let Touched(range) = mem::replace(self, Self::NONE);
        (range.start < range.end).then_some(range)
    }
}

/// Pages that a removal has taken out of the tables but not yet out of the TLBs.
///
/// Frames in here may still be written by other CPUs. [`Pmap::settle`] flushes and
/// frees; a gather must not be dropped with something in it.
pub(super) struct Gather {
    touched: Touched,
    /// Pages to be released, and from the end on `dirty_count` pages of objects that were mapped
    /// without being listed, and written.
    pages: [MaybeUninit<Frame>; CAPACITY],
    page_count: usize,
    dirty_count: usize,
    /// Pages without a reference, to be freed.
    frozen: [MaybeUninit<Frame>; CAPACITY],
    frozen_count: usize,
    /// Pages of kin's to be let go of, and where they were.
    kin: [MaybeUninit<(usize, Frame)>; CAPACITY],
    kin_count: usize,
    /// The first frames of superpages.
    superpages: [MaybeUninit<Frame>; SUPERPAGES],
    superpage_count: usize,
}

impl Gather {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Gather {
            touched: Touched::NONE,
            pages: [const { MaybeUninit::uninit() }; CAPACITY],
            page_count: 0,
            dirty_count: 0,
            frozen: [const { MaybeUninit::uninit() }; CAPACITY],
            frozen_count: 0,
            kin: [const { MaybeUninit::uninit() }; CAPACITY],
            kin_count: 0,
            superpages: [const { MaybeUninit::uninit() }; SUPERPAGES],
            superpage_count: 0,
        }
    }

    /// A page that was mapped at `address`.
    #[inline]
    pub(super) fn page(&mut self, address: usize, frame: Frame) {
        self.touch(address);
        self.pages[self.page_count].write(frame);
        self.page_count += 1;
    }

    /// A page that was mapped at `address`, and has no reference any more; whether the next such
    /// page would not fit.
    #[inline(always)]
    #[must_use]
    pub(super) fn frozen_page(&mut self, address: usize, frame: Frame) -> bool {
        self.touch(address);
        self.frozen[self.frozen_count].write(frame);
        self.frozen_count += 1;
        self.frozen_count == CAPACITY
    }

    /// A page of kin's that was mapped at `address`; whether the next such page would not fit.
    #[must_use]
    pub(super) fn kin_page(&mut self, address: usize, frame: Frame) -> bool {
        self.touch(address);
        self.kin[self.kin_count].write((address, frame));
        self.kin_count += 1;
        self.kin_count == CAPACITY
    }

    /// A superpage that was mapped at `address`, by its first frame.
    pub(super) fn superpage(&mut self, address: usize, first: Frame) {
        // The flush of one page forgets all.
        self.touch(address);
        self.superpages[self.superpage_count].write(first);
        self.superpage_count += 1;
    }

    /// A page of an object that was mapped at `address` without being listed, and written: it is to
    /// be dirty when it is flushed.
    pub(super) fn dirty_page(&mut self, address: usize, frame: Frame) {
        self.touch(address);
        self.dirty_count += 1;
        self.pages[CAPACITY - self.dirty_count].write(frame);
    }

    /// A page at `address` whose translation changed.
    #[inline]
    pub(super) fn touch(&mut self, address: usize) {
        self.touched.page(address);
    }

    /// Returns true if the next page of another kind, or superpage, would not fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.page_count + self.dirty_count == CAPACITY || self.superpage_count == SUPERPAGES
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
        self.settle_after(gather, || {});
    }

    /// Flushes what is gathered, calls `flushed`, and frees.
    #[inline]
    pub(super) fn settle_after(&self, gather: &mut Gather, flushed: impl FnOnce()) {
        let Some(range) = gather.touched.take() else {
            return;
        };
        self.flush(Flush::Range(range));
        flushed();
        if gather.frozen_count > 0 {
            let frozen = &gather.frozen[..gather.frozen_count];
            // SAFETY: so many were written, from the beginning on.
            let frozen = frozen.iter().map(|frame| unsafe { frame.assume_init() });
            self.vm.free_pages(frozen);
            gather.frozen_count = 0;
        }
        if gather.page_count > 0 {
            self.release_gathered(gather);
        }
        if gather.kin_count > 0 {
            self.settle_kin(gather);
        }
        if gather.superpage_count + gather.dirty_count > 0 {
            self.settle_others(gather);
        }
    }

    /// Releases the gathered pages that have references.
    fn release_gathered(&self, gather: &mut Gather) {
        let pages = &gather.pages[..gather.page_count];
        // SAFETY: so many were written, from the beginning on.
        let pages = pages.iter().map(|frame| unsafe { frame.assume_init() });
        self.vm.release_pages(pages);
        gather.page_count = 0;
    }

    /// Lets go of the gathered pages of kin's, slot by slot.
    #[inline(never)]
    fn settle_kin(&self, gather: &mut Gather) {
        let pages = &gather.kin[..gather.kin_count];
        // SAFETY: so many were written, from the beginning on.
        let mut pages = unsafe { pages.assume_init_ref() };
        while let [(address, _), ..] = *pages {
            let part = self.tree.held(address);
            let is_here = |&&(address, _): &&(usize, Frame)| part.range().contains(address);
            let (here, rest) = pages.split_at(pages.iter().take_while(is_here).count());
            self.let_go(&part, here);
            pages = rest;
        }
        gather.kin_count = 0;
    }

    /// Frees the gathered superpages, and marks pages of objects as dirty.
    #[cold]
    fn settle_others(&self, gather: &mut Gather) {
        for first in &gather.superpages[..gather.superpage_count] {
            // SAFETY: so many were written.
            self.vm.release_block(unsafe { first.assume_init() });
        }
        gather.superpage_count = 0;
        for frame in &gather.pages[CAPACITY - gather.dirty_count..] {
            // SAFETY: so many were written, from the end on.
            self.note_dirty(unsafe { frame.assume_init() });
        }
        gather.dirty_count = 0;
    }

    /// Flushes what has changed, with nothing to be freed, from all TLBs that may have it.
    pub(super) fn flush_touched(&self, mut touched: Touched) {
        if let Some(range) = touched.take() {
            self.flush(Flush::Range(range));
        }
    }

    /// Flushes on every CPU that may use translations of this pmap, and returns when all have.
    /// Interrupts no CPU but those: who translates for another space flushes when it comes back.
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

    /// Drops the entries of a pmap that no CPU translates by, on all CPUs that may have some: its
    /// tag is to be another's.
    pub(super) fn flush_everywhere(&self) {
        // Who comes to a space without a tag of its own flushes in any case.
        if self.asid == SHARED {
            return;
        }
        let (pin, machine) = (S::Machine::pin(), self.vm.machine());
        let (has_own, has_others) = self.active.look(machine.cpus(), pin.cpu().index());
        if has_others {
            machine.shootdown(&self.active.all(machine.cpus()), self.asid, Flush::All);
        } else if has_own {
            machine.flush_local(self.asid, Flush::All);
        }
    }
}

//! Private pages out to the swap space, several at once.

use crate::object::PageRef;
use crate::page::{Identity, Page};
use crate::pmap::How;
use crate::policy::Policies;
use crate::swap::{CLUSTER, Eviction, SwapSpace};
use crate::vm::Vm;
use core::mem::{self, MaybeUninit};
use machine::{Frame, Platform};

/// Pages that go out together: held, and marked as laundry.
pub(crate) struct Batch<'a, M: Platform, P: Policies<M>> {
    /// The first `len` are there: most batches are small.
    pages: [MaybeUninit<Option<Outgoing<'a, M, P>>>; CLUSTER],
    len: usize,
}

/// A page on its way out.
struct Outgoing<'a, M: Platform, P: Policies<M>> {
    held: PageRef<'a, M, P>,
    /// Its slot, of which the reclaimer has a reference.
    slot: Option<u32>,
    /// The slot has its content.
    written: bool,
}

impl<'a, M: Platform, P: Policies<M>> Batch<'a, M, P> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Batch {
            pages: [const { MaybeUninit::uninit() }; CLUSTER],
            len: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == CLUSTER
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a page that is marked as laundry. There must be room.
    pub(super) fn push(&mut self, held: PageRef<'a, M, P>) {
        self.pages[self.len].write(Some(Outgoing {
            held,
            slot: None,
            written: true,
        }));
        self.len += 1;
    }

    /// Takes the pages out: the caller uses them up.
    #[inline(always)]
    fn take(&mut self) -> &mut [Option<Outgoing<'a, M, P>>] {
        let pages = &mut self.pages[..mem::take(&mut self.len)];
        // SAFETY: so many were written.
        unsafe { pages.assume_init_mut() }
    }
}

impl<M: Platform, P: Policies<M>> Drop for Batch<'_, M, P> {
    fn drop(&mut self) {
        self.take().iter_mut().for_each(|page| drop(page.take()));
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Sends the pages of the batch out; how many frames that freed. The batch is empty
    /// then.
    pub(crate) fn launder<'a>(&'a self, batch: &mut Batch<'a, M, P>) -> usize {
        let pages = batch.take();
        if let Some(swap) = self.swap_space() {
            self.find_slots(swap, pages);
            self.give_slots(swap, pages);
            for page in pages.iter_mut().flatten() {
                self.unmap_outgoing(swap, page);
            }
            self.write_out(swap, pages);
        }
        let outgoing = pages.iter_mut().filter_map(Option::take);
        outgoing.map(|page| usize::from(self.finish(page))).sum()
    }

    /// Finds the pages that have a slot already.
    fn find_slots(&self, swap: &SwapSpace<M>, pages: &mut [Option<Outgoing<'_, M, P>>]) {
        for page in pages.iter_mut().flatten() {
            let frame = page.held.frame();
            if let Identity::Swap(slot) = self.page(frame).identity()
                && swap.retain_if(slot, frame)
            {
                let unwritten = Page::<M, P::Invalidation>::UNWRITTEN;
                page.written = self.page(frame).flags() & unwritten == 0;
                page.slot = Some(slot);
            }
        }
    }

    /// Gives new slots to the others, as far as there are some: neighbouring ones, if there
    /// are some.
    fn give_slots(&self, swap: &SwapSpace<M>, pages: &mut [Option<Outgoing<'_, M, P>>]) {
        let mut frames = [Frame(0); CLUSTER];
        let mut new = [0_u8; CLUSTER];
        let mut count = 0;
        for (index, page) in pages.iter().enumerate() {
            if let Some(Outgoing {
                held, slot: None, ..
            }) = page
                && self.page(held.frame()).identity() == Identity::Private
            {
                (frames[count], new[count]) = (held.frame(), index as u8);
                count += 1;
            }
        }
        let mut done = 0;
        // The cache's references.
        frames[..count]
            .iter()
            .for_each(|&at| self.page(at).retain());
        while done < count
            && let Some(slots) = swap.allocate(&frames[done..count])
        {
            for slot in slots {
                let page = self.page(frames[done]);
                let mut list = self.lock_pv(frames[done]);
                list.take_flags(Page::<M, P::Invalidation>::LAZY);
                list.set_flags(Page::<M, P::Invalidation>::UNWRITTEN);
                page.set_identity(Identity::Swap(slot));
                drop(list);
                if let Some(outgoing) = &mut pages[usize::from(new[done])] {
                    (outgoing.slot, outgoing.written) = (Some(slot), false);
                }
                done += 1;
            }
        }
        frames[done..count]
            .iter()
            .for_each(|&at| self.release_page(at));
    }

    /// Makes the page's mappings entries that name its slot.
    fn unmap_outgoing(&self, swap: &SwapSpace<M>, page: &mut Outgoing<'_, M, P>) {
        let Some(slot) = page.slot else { return };
        let how = How {
            slot: Some(slot),
            ..How::RECLAIM
        };
        let removed = self.remove_as(page.held.frame(), None, how);
        // A page that its only mapping keeps may be written all the time: it stays private.
        if removed.is_locked && swap.references(slot) == 1 {
            page.slot = None;
            self.release_swapped(slot);
        }
    }

    /// Writes the pages that have to be, neighbours at once.
    fn write_out(&self, swap: &SwapSpace<M>, pages: &mut [Option<Outgoing<'_, M, P>>]) {
        let mut from = 0;
        while from < pages.len() {
            let mut frames = [Frame(0); CLUSTER];
            let mut first = None;
            let mut count = 0;
            for page in pages[from..].iter().flatten() {
                let Some(slot) = page.slot.filter(|_| !page.written) else {
                    break;
                };
                if slot != *first.get_or_insert(slot) + count as u32 {
                    break;
                }
                frames[count] = page.held.frame();
                count += 1;
            }
            let Some(first) = first else {
                from += 1;
                continue;
            };
            if swap.write(self.machine(), first, &frames[..count]).is_ok() {
                for page in pages[from..from + count].iter_mut().flatten() {
                    let mut list = self.lock_pv(page.held.frame());
                    list.take_flags(Page::<M, P::Invalidation>::UNWRITTEN);
                    page.written = true;
                }
            }
            from += count;
        }
    }

    /// Frees the page if no task wants it any more; whether it did.
    fn finish(&self, page: Outgoing<'_, M, P>) -> bool {
        let Outgoing {
            held,
            slot,
            written,
        } = page;
        let frame = held.frame();
        let mut evicted = false;
        if let (Some(slot), Some(swap)) = (slot, self.swap_space()) {
            // The cache's reference and this reclaimer's.
            let freeze = || self.page(frame).freeze(2);
            evicted = written && swap.uncache(slot, frame, freeze) == Eviction::Evicted;
        }
        if evicted {
            self.free_page(held.into_frame(), false);
        } else {
            let mut list = self.lock_pv(frame);
            list.take_flags(Page::<M, P::Invalidation>::LAUNDRY);
        }
        if let Some(slot) = slot {
            self.release_swapped(slot);
        }
        evicted
    }
}

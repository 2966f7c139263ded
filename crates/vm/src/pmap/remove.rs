//! Removing the mappings of a range: munmap's half of the pmap.

use super::flush::Gather;
use super::{Inner, Pmap};
use crate::page::Page;
use crate::policy::{Invalidation, Policies};
use machine::{Atomic, Frame, Ordering, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Unmaps whatever is mapped in `range`, and drops its references. When it
    /// returns, no CPU can reach the pages any more.
    ///
    /// O(pages mapped + tables spanned); one flush for each 128 pages.
    pub fn remove(&self, range: VaRange) {
        // As FreeBSD: unsynchronised, but who maps concurrently races with us anyway.
        if self.resident() == 0 {
            return;
        }
        let block = self.vm.invalidation().begin();
        let mut inner = self.inner.lock();
        let mut gather = Gather::new();
        self.for_each_entry(range, |address, entry| {
            // Exchange: the walker may set accessed and dirty at any moment. AcqRel with
            // the walker's exchange: bits set before are seen, a later one fails.
            let old = entry.swap(0, Ordering::AcqRel);
            self.unlist(&mut inner, &block, address, old);
            gather.page(address, pte::frame(old));
            let pruned = self.prune(address, &mut gather);
            if gather.is_full() {
                self.settle(&mut gather);
            }
            pruned
        });
        self.settle(&mut gather);
        drop(inner);
        drop(block);
    }

    /// Takes the PV entry of a cleared mapping off its page's list. Between this and
    /// the flush the page looks unmapped and is not: the block has it noted.
    fn unlist(
        &self,
        inner: &mut Inner<M>,
        block: &<P::Invalidation as Invalidation<M>>::Block<'_>,
        address: usize,
        old: u64,
    ) {
        let frame = pte::frame(old);
        let page = self.vm.page(frame);
        let mut list = page.lock_pv();
        let pv = list.find(self.identity(), Some(address));
        let pv = pv.expect("a mapping has a PV entry");
        list.set_flags(Page::<M, P::Invalidation>::harvest(old));
        let invalidation = self.vm.invalidation();
        invalidation.note(block, frame, &page.invalidation);
        // SAFETY: just found on this list.
        unsafe { list.remove(pv) };
        drop(list);
        self.free_pv(inner, pv);
        self.add_resident(-1);
    }

    /// Gives back a PV entry that is on no list any more.
    pub(super) fn free_pv(&self, inner: &mut Inner<M>, pv: super::Pv<M>) {
        // SAFETY: the pmap's lock is held (`inner` comes from its guard), and the
        // entry is the pmap's.
        let emptied: Option<Frame> = unsafe { inner.chunks.give(pv) };
        if let Some(chunk) = emptied {
            self.vm.free(chunk, false);
        }
    }
}

//! Removing all mappings of a page: what a pageout does.

use super::flush::Gather;
use super::{Inner, Pmap, Pv};
use crate::page::{Page, PvList};
use crate::policy::{Invalidation, Policies};
use crate::vm::{Hold, Vm};
use alloc::sync::Arc;
use machine::{Atomic, Ordering, Platform, pte};

/// What the mappings that went knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The page has been written since it was last clean.
    pub dirty: bool,
    /// The page has been used since it was last looked at.
    pub referenced: bool,
    /// How many mappings were removed.
    pub mappings: usize,
    /// How often a pmap's lock was taken and the page looked at anew.
    pub retries: usize,
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Removes every mapping of a page. When it returns, no page table and no TLB
    /// translates to it, whoever removed the mapping; the page's dirty and referenced
    /// bits are handed over (and cleared).
    ///
    /// O(mappings), plus the wait for removals under way. The caller holds no lock and
    /// is in no delayed-invalidation block.
    pub fn remove_all(&self, hold: &Hold<M, P>) -> Removed {
        let frame = hold.frame();
        let page = self.page(frame);
        let reverse = self.invalidation().reverse();
        let (mut mappings, mut retries) = (0, 0);
        let mut list = page.lock_pv();
        while let Some(pv) = list.first() {
            // SAFETY: the PV lock is held.
            let pmap = unsafe { pv.owner() }.cast::<Pmap<M, P>>();
            // SAFETY: a pmap outlives its PV entries, and this one is on the list.
            if let Some(mut inner) = unsafe { &*pmap }.inner.try_lock() {
                // SAFETY: as above; nothing has been let go.
                unsafe { &*pmap }.take_away(&mut inner, &mut list, pv);
                mappings += 1;
                continue;
            }
            // The order is pmap first. Keep the pmap alive, let the list go, lock both
            // in order, and look again: the mapping may have gone meanwhile.
            // SAFETY: pmaps live in an `Arc`, which can not go while its PV entry is here.
            let pmap = unsafe {
                Arc::increment_strong_count(pmap);
                Arc::from_raw(pmap)
            };
            drop(list);
            retries += 1;
            {
                let mut inner = pmap.inner.lock();
                list = page.lock_pv();
                if let Some(pv) = list.find(pmap.identity(), None) {
                    pmap.take_away(&mut inner, &mut list, pv);
                    mappings += 1;
                }
            }
            // The pmap's own locks must be free if this was the last reference to it.
            drop(list);
            drop(pmap);
            list = page.lock_pv();
        }
        drop(list);
        // Mappings that others had already taken off the list may still be cached.
        self.invalidation()
            .wait(&reverse, frame, &page.invalidation);
        let flags = page.lock_pv().take_flags();
        drop(reverse);
        Removed {
            dirty: flags & Page::<M, P::Invalidation>::DIRTY != 0,
            referenced: flags & Page::<M, P::Invalidation>::REFERENCED != 0,
            mappings,
            retries,
        }
    }
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Clears and flushes the mapping of `pv`, under both locks.
    fn take_away(
        &self,
        inner: &mut Inner<M>,
        list: &mut PvList<'_, M, P::Invalidation>,
        pv: Pv<M>,
    ) {
        // SAFETY: the PV lock is held.
        let address = unsafe { pv.address() };
        let table = self.leaf(address).expect("a PV entry has a mapping");
        let old = self.entry(table, 0, address).swap(0, Ordering::AcqRel);
        list.set_flags(Page::<M, P::Invalidation>::harvest(old));
        // SAFETY: the entry is on this list.
        unsafe { list.remove(pv) };
        self.free_pv(inner, pv);
        self.add_resident(-1);
        let mut gather = Gather::new();
        gather.page(address, pte::frame(old));
        self.prune(address, &mut gather);
        // Drops the mapping's reference; the caller's hold keeps the page.
        self.settle(&mut gather);
    }
}

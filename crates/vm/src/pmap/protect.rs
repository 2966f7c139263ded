//! Changing the rights of what is mapped.

use super::Pmap;
use super::flush::Gather;
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::{Locked, Part};
use machine::{Flush, Ordering, PAGE_SIZE, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gives the mapped pages of `range` the rights `prot`. When it returns, no CPU
    /// can use a right that was taken away. (A CPU may not know yet of a right that was
    /// given; it faults, and `refresh` settles it.)
    ///
    /// No delayed invalidation: the PV entries stay, so whoever removes the page takes
    /// the slot's lock and finds the flush done. Locks one slot at a time.
    pub fn protect(&self, range: VaRange, prot: Prot) {
        let _pmap = self.locking.pmap();
        for place in self.tree.places(range) {
            if place.slot.resident() > 0 {
                self.protect_locked(&mut self.tree.lock_small(place, range), prot);
            }
        }
    }

    /// As [`Pmap::protect`], for a range that is locked.
    pub(crate) fn protect_locked(&self, locked: &mut Locked<'_, M>, prot: Prot) {
        if locked.parts().all(|part| part.resident() == 0) {
            return;
        }
        let mut gather = Gather::new();
        for part in locked.parts() {
            self.protect_part(part, prot, &mut gather);
        }
        self.settle(&mut gather);
    }

    fn protect_part(&self, mut part: Part<'_, M>, prot: Prot, gather: &mut Gather) {
        let mut from = part.range().start;
        while part.resident() > 0
            && let Some(address) = self.next_present(&mut part, from)
            && let Some(leaf) = part.inside().leaf
        {
            if rewrite(self.entry(leaf, 0, address), prot) {
                gather.touch(address);
            }
            from = address + PAGE_SIZE;
        }
    }

    /// Forgets this CPU's translation of `address`, after a fault that the entry does
    /// not explain.
    pub(crate) fn refresh(&self, address: usize) {
        let page = VaRange::sized(address & !(PAGE_SIZE - 1), PAGE_SIZE);
        self.vm.machine().flush_local(self.asid, Flush::Range(page));
    }
}

/// Sets the entry's rights; `true` if that took one away.
fn rewrite<W: machine::AtomicInt<u64>>(entry: &W, prot: Prot) -> bool {
    let mut old = entry.load(Ordering::Relaxed);
    loop {
        let new = old & !Prot::MASK | prot.bits();
        // The walker may set accessed and dirty meanwhile. AcqRel: as in `remove`.
        match entry.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                let rights = pte::USER | pte::WRITABLE;
                let lost = old & !new & rights | new & !old & pte::NO_EXECUTE;
                return lost != 0;
            }
            Err(other) => old = other,
        }
    }
}

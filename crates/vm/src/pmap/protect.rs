//! Changing the rights of what is mapped.

use super::Pmap;
use super::flush::Gather;
use crate::policy::Policies;
use crate::prot::Prot;
use machine::{Flush, Ordering, PAGE_SIZE, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Gives the mapped pages of `range` the rights `prot`. When it returns, no CPU
    /// can use a right that was taken away. (A CPU may not know yet of a right that was
    /// given; it faults, and `refresh` settles it.)
    ///
    /// No delayed invalidation: the PV entries stay, so whoever removes the page takes
    /// the pmap's lock and finds the flush done.
    pub fn protect(&self, range: VaRange, prot: Prot) {
        if self.resident() == 0 {
            return;
        }
        let _inner = self.inner.lock();
        let mut gather = Gather::new();
        self.for_each_entry(range, |address, entry| {
            if rewrite(entry, prot) {
                gather.touch(address);
            }
            false
        });
        self.settle(&mut gather);
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

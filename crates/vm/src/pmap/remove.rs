//! Removing the mappings of a range: munmap's half of the pmap.

use super::Pmap;
use super::entry::{self, Entry};
use super::flush::Gather;
use crate::error::Error;
use crate::page::{Last, Page, PvList};
use crate::policy::{Invalidation, MapLocking, Policies};
use crate::tree::{Kind, Locked, Mapped, Part, Size};
use machine::{Atomic, Ordering, Platform, VaRange, pte};

pub(super) type Block<'a, M, P> = <<P as Policies<M>>::Invalidation as Invalidation<M>>::Block<'a>;

/// A range locked so that pages may be taken away from it.
///
/// The fields are dropped in this order: the slots, the pmap, the block.
pub(crate) struct Removal<'a, M: Platform, P: Policies<M>> {
    pmap: &'a Pmap<M, P>,
    pub(crate) locked: Locked<'a, M, P>,
    _lock: <P::Locking as MapLocking<M>>::Pmap<'a>,
    block: Option<Block<'a, M, P>>,
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Unmaps whatever is mapped in `range`, and drops its references. When it
    /// returns, no CPU can reach the pages any more.
    ///
    /// Locks one slot at a time. O(pages mapped + slots); one flush for each 128 pages,
    /// and one a slot. An error if there is no memory to take pages from a part of a slot whose
    /// table a fork has shared; then what comes before that is done.
    pub fn remove(&self, range: VaRange) -> Result<(), Error> {
        self.remove_slots(range, |removal| removal.pages())
    }

    /// As [`Pmap::remove`], where what is mapped is `wanted`.
    pub(super) fn remove_where(
        &self,
        range: VaRange,
        wanted: impl Fn(Mapped<'_, M, P>) -> bool,
    ) -> Result<(), Error> {
        self.remove_slots(range, |removal| removal.pages_where(&wanted))
    }

    fn remove_slots(
        &self,
        range: VaRange,
        remove: impl Fn(&mut Removal<'_, M, P>),
    ) -> Result<(), Error> {
        for place in self.tree.places(range) {
            // Also those that look vacant: a page may just be on its way to the swap space, or a
            // fault under way that has asked for the object's size.
            if place.level == 0 {
                let lock = || Ok(self.tree.lock_small(place, range));
                remove(&mut self.removal(lock)?);
            }
        }
        Ok(())
    }

    /// Locks `range` for a removal.
    #[track_caller]
    pub(crate) fn lock_to_remove(&self, range: VaRange) -> Result<Removal<'_, M, P>, Error> {
        self.removal(|| self.tree.lock(range))
    }

    /// Opens a block if it must be opened before `lock`, and locks.
    pub(super) fn removal<'a>(
        &'a self,
        lock: impl Fn() -> Result<Locked<'a, M, P>, Error>,
    ) -> Result<Removal<'a, M, P>, Error> {
        let eager = P::Invalidation::EAGER;
        // As FreeBSD: unsynchronised; what a concurrent fault brings shows below.
        let mut open = eager && self.resident() != 0;
        loop {
            let mut removal = Removal {
                pmap: self,
                block: open.then(|| self.vm.invalidation().begin()),
                _lock: self.locking.pmap(),
                locked: lock()?,
            };
            removal.own_parts()?;
            if open || !eager || removal.is_vacant() {
                return Ok(removal);
            }
            open = true;
        }
    }
}

impl<M: Platform, P: Policies<M>> Removal<'_, M, P> {
    /// Takes away all pages of the range. When it returns, no CPU can reach them.
    pub(crate) fn pages(&mut self) {
        let (mut is_vacant, mut is_shared) = (true, false);
        for part in self.locked.parts() {
            is_vacant &= part.is_vacant();
            is_shared |= part.size() == Size::Shared;
        }
        if is_shared {
            self.pmap.leave_slots(&mut self.locked);
        }
        if !is_vacant {
            self.take(|part, take| take(part.range()));
        }
    }

    /// Gets tables of their own for the slots of which a part has entries to be taken away. After
    /// an error nothing has changed.
    fn own_parts(&mut self) -> Result<(), Error> {
        let pmap = self.pmap;
        let mut parts = self.locked.cut_parts();
        parts.try_for_each(|mut part| pmap.own_used(&mut part))
    }

    /// As [`Removal::pages`], of what is mapped and `wanted`.
    fn pages_where(&mut self, wanted: impl Fn(Mapped<'_, M, P>) -> bool) {
        if self.is_vacant() {
            return;
        }
        self.take(|part, take| {
            part.for_each(|mapped| {
                let range = mapped.range;
                if wanted(mapped) {
                    take(range);
                }
            });
        });
    }

    /// Takes away the ranges that `choose` gives of each part.
    fn take(&mut self, choose: impl Fn(&Part<'_, M, P>, &mut dyn FnMut(VaRange))) {
        let Removal {
            pmap,
            locked,
            block,
            ..
        } = self;
        let block = block.get_or_insert_with(|| pmap.vm.invalidation().begin());
        let mut gather = Gather::new();
        for part in locked.parts() {
            choose(&part, &mut |range| {
                pmap.take_pages(part.again(range), block, &mut gather);
            });
        }
        pmap.settle(&mut gather);
        pmap.trim_chunks();
    }

    /// Whether no slot of the range has a page.
    fn is_vacant(&mut self) -> bool {
        self.locked.parts().all(|part| part.is_vacant())
    }
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Clears the entries of `part`, and gathers what must be flushed and freed.
    fn take_pages(&self, mut part: Part<'_, M, P>, block: &Block<'_, M, P>, gather: &mut Gather) {
        if part.is_vacant() {
            return;
        }
        if part.size() == Size::Superpage && part.is_all() {
            self.take_superpage(&mut part, block, gather);
            return self.settle_if_full(gather);
        }
        self.split(&mut part);
        let mut last = None;
        for (address, bits) in self.used(part.leaf(), part.range()) {
            if let Entry::Swapped(slot) = Entry::decode(bits) {
                self.clear(&mut part, address, 0);
                // The slot may have a page, whose list is locked to let it go.
                drop(last.take());
                self.vm.release_swapped(slot);
                continue;
            }
            let (old, list) = self.take_mapping(&mut part, address, block, last.take());
            let frame = pte::frame(old);
            gather.page(address, frame);
            if gather.is_full() {
                drop(list);
                self.settle(gather);
            } else {
                last = self.vm.keep_pv(list, frame);
            }
        }
    }

    fn settle_if_full(&self, gather: &mut Gather) {
        if gather.is_full() {
            self.settle(gather);
        }
    }

    /// Clears the entry at `address`, which is valid, and takes its PV entry off the
    /// page's list; returns what the entry was, and the list, still locked. Between this and the flush the page looks
    /// unmapped and is not: the block has it noted.
    fn take_mapping<'a>(
        &'a self,
        part: &mut Part<'_, M, P>,
        address: usize,
        block: &Block<'_, M, P>,
        last: Option<Last<'a, M, P>>,
    ) -> (u64, PvList<'a, M, P>) {
        let old = self.clear(part, address, 0);
        let frame = pte::frame(old);
        let page = self.vm.page(frame);
        let mut list = self.vm.lock_pv_after(last, frame);
        list.set_flags(Page::<M, P::Invalidation>::harvest(old));
        let invalidation = self.vm.invalidation();
        invalidation.note(block, frame, &page.invalidation);
        // SAFETY: the mapping's, so it is on this list.
        unsafe { self.unlist(&mut list, part, address) };
        (old, list)
    }

    /// Puts `next` (0, or a slot of the swap space) in the place of the entry at `address`,
    /// which says something and is no superpage's; returns what it was.
    pub(super) fn clear(&self, part: &mut Part<'_, M, P>, address: usize, next: u64) -> u64 {
        // Exchange: the walker may set accessed and dirty at any moment. AcqRel with
        // the walker's exchange: bits set before are seen, a later one fails.
        let old = self.to_clear(part, address).swap(next, Ordering::AcqRel);
        self.count_cleared(part, old);
        if next != 0 {
            part.add(Kind::Swapped, 1);
        }
        old
    }

    /// Clears the entry at `address`, which maps a page, unless it is marked dirty; whether it
    /// did.
    pub(super) fn clear_clean(&self, part: &mut Part<'_, M, P>, address: usize) -> bool {
        let entry = self.to_clear(part, address);
        let mut old = entry.load(Ordering::Relaxed);
        while old & pte::DIRTY == 0 {
            // AcqRel: as in `clear`.
            match entry.compare_exchange_weak(old, 0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.count_cleared(part, old);
                    return true;
                }
                Err(now) => old = now,
            }
        }
        false
    }

    /// The entry at `address`, in a slot whose pages are mapped one by one from now on.
    fn to_clear(&self, part: &mut Part<'_, M, P>, address: usize) -> &M::AtomicU64 {
        debug_assert!(!matches!(part.size(), Size::Superpage | Size::Shared));
        self.split(part);
        let leaf = part.leaf().get().expect("a mapping has a table");
        self.entry(leaf, 0, address)
    }

    /// Counts an entry less: `old` is what it was.
    fn count_cleared(&self, part: &mut Part<'_, M, P>, old: u64) {
        part.add(entry::kind(old), -1);
        self.count_resident(-isize::from(old & pte::PRESENT != 0));
    }
}

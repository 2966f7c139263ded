//! The walker's marks of a page: accessed and dirty bits of all its mappings.
//!
//! A task reads and clears them under the page's PV lock alone: as long as a PV entry is listed,
//! its leaf table and its pmap stay. The holder of the slot's lock may have cleared the entry and
//! be about to lock the list; then it passes the entry's bits to the page. For mappings that are on
//! no list ([`super::attached`]) it holds the slot's lock.

use super::Pmap;
use super::attached::Found;
use super::listed::Members;
use crate::page::Page;
use crate::pv::Pv;
use crate::system::{Invalidation, System};
use crate::tree::Size;
use crate::vm::{Hold, Vm};
use machine::{Atomic, AtomicInt, Flush, Frame, Ordering, PAGE_SIZE, VaRange, pte};

/// Another task writes the page, or takes it away.
pub(crate) struct Busy;

impl<S: System> Vm<S> {
    /// Returns true if a mapping of the page has been used since the last call. TLBs are not
    /// flushed, so a page that stays in one may be taken for unused (as on x86 systems in general).
    /// O(mappings).
    ///
    /// # Panics
    /// If the page is another VM's.
    pub fn test_referenced(&self, hold: &Hold<S>) -> bool {
        hold.check(self);
        let frame = hold.frame();
        let of_object =
            self.wait_for_object(frame, hold.entry(), |of| of.take_bit(frame, pte::ACCESSED));
        self.test_listed(frame) | of_object.unwrap_or(false)
    }

    /// Returns true if a mapping of the page has been used since the last call, while the caller
    /// holds the page; an error if another task is busy with it.
    pub(crate) fn test_referenced_at(&self, frame: Frame) -> Result<bool, Busy> {
        let of_object = match self.of_object(frame, None, |of| of.take_bit(frame, pte::ACCESSED)) {
            Found::Object(referenced) => referenced,
            Found::Listed => false,
            Found::Busy => return Err(Busy),
        };
        Ok(self.test_listed(frame) | of_object)
    }

    /// Returns true if the page is known to be used, or a mapping on its list has been.
    fn test_listed(&self, frame: Frame) -> bool {
        let mut list = self.lock_pv(frame);
        let flags = list.take_flags(Page::<S>::REFERENCED);
        let mut referenced = flags != 0;
        for pv in list.iter(self.machine()) {
            // SAFETY: the PV lock is held.
            let (members, address) = unsafe { (self.members_of(pv), self.address_of(pv)) };
            // SAFETY: `members` are of an entry on this list, which is locked.
            referenced |= match unsafe { self.superpage_of(&members) } {
                Some(pmap) => pmap.test_superpage(address, frame),
                // SAFETY: `members` are of the entry, which is on this list.
                None => unsafe { self.take_listed_bit(pv, &members, frame, pte::ACCESSED) },
            };
        }
        referenced
    }

    /// Returns true if the page has been written since the last call. From then on a task that
    /// writes it marks it again: dirty translations are flushed from the TLBs. A page mapped by a
    /// superpage stays modified with it: its one bit is 512 pages'. O(mappings), plus the wait for
    /// removals under way. The caller holds no lock and is in no delayed-invalidation block.
    ///
    /// # Panics
    /// If the page is another VM's.
    pub fn test_modified(&self, hold: &Hold<S>) -> bool {
        hold.check(self);
        let frame = hold.frame();
        let page = self.page(frame);
        // Before the flag is taken: an unmap for which the walk has waited may set it.
        let of_object =
            self.wait_for_object(frame, hold.entry(), |of| of.take_bit(frame, pte::DIRTY));
        let reverse = self.invalidation().reverse();
        let mut list = self.lock_pv(frame);
        let flags = list.take_flags(Page::<S>::DIRTY);
        let mut modified = flags != 0 || of_object.unwrap_or(false);
        for pv in list.iter(self.machine()) {
            // SAFETY: the PV lock is held.
            let (members, address) = unsafe { (self.members_of(pv), self.address_of(pv)) };
            // SAFETY: `members` are of an entry on this list, which is locked.
            if let Some(pmap) = unsafe { self.superpage_of(&members) } {
                let bits = pmap.superpage(address).load(Ordering::Relaxed);
                modified |= bits & pte::DIRTY != 0;
                continue;
            }
            // SAFETY: `members` are of the entry, which is on this list.
            if unsafe { self.take_listed_bit(pv, &members, frame, pte::DIRTY) } {
                modified = true;
                for member in members.all() {
                    // SAFETY: a family is locked; a pmap outlives its PV entries.
                    let (pmap, _) = unsafe { member.get::<S>() };
                    pmap.flush(Flush::Range(VaRange::sized(address, PAGE_SIZE)));
                }
            }
        }
        if modified {
            list.take_flags(Page::<S>::LAZY);
        }
        drop(list);
        // Tasks may still write through mappings that others have taken off the list.
        self.invalidation()
            .wait(&reverse, frame, &page.invalidation);
        modified
    }

    /// Clears `bit` of the page in `frame` where `members`, those of `pv`, map it. Returns true if
    /// it was set.
    ///
    /// # Safety
    /// `pv` is on the page's list, which the caller has locked.
    unsafe fn take_listed_bit(
        &self,
        pv: Pv,
        members: &Members<'_, S::Machine>,
        frame: Frame,
        bit: u64,
    ) -> bool {
        if !members.are_kin() {
            // SAFETY: the entry is on the list.
            return take(unsafe { self.word_of(pv) }, frame, bit);
        }
        // SAFETY: the entry is on the list.
        let words = members.words_of_kin(self.machine(), unsafe { self.address_of(pv) });
        words.fold(false, |set, word| set | take(word, frame, bit))
    }

    /// The pmap of a PV entry's members, if its page is mapped by a superpage there; that stays so
    /// as long as the list is locked.
    ///
    /// # Safety
    /// The entry is on a list that the caller has locked.
    unsafe fn superpage_of(&self, members: &Members<'_, S::Machine>) -> Option<&Pmap<S>> {
        // A table that several have is no superpage.
        let owner = members.alone()?;
        // SAFETY: a pmap outlives its PV entries, and one of them is on the list.
        let (pmap, slot) = unsafe { owner.get() };
        (slot.size() == Size::Superpage).then_some(pmap)
    }
}

/// Clears `bit` of an entry that maps `frame`. Returns true if it was set.
pub(super) fn take<W: AtomicInt<u64>>(entry: &W, frame: Frame, bit: u64) -> bool {
    debug_assert!(
        bit & !(pte::ACCESSED | pte::DIRTY) == 0,
        "the bit is not the walker's"
    );
    let mut old = entry.load(Ordering::Relaxed);
    while old & pte::PRESENT != 0 && pte::frame(old) == frame && old & bit != 0 {
        // AcqRel: stores made before the bit was set are seen, as in `clear`.
        match entry.compare_exchange_weak(old, old & !bit, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => old = now,
        }
    }
    false
}

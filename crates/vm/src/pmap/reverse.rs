//! Removal of all mappings of a page, for a pageout.

use super::kin::is_kin;
use super::listed::Members;
use super::{Pmap, entry};
use crate::flags::Flags;
use crate::page::{Page, PvList};
use crate::pv::Pv;
use crate::system::{Invalidation, System};
use crate::tree::{Kind, Mapped, Part, Place, Size};
use crate::vm::{Hold, Vm};
use alloc::sync::Arc;
use core::num::NonZeroUsize;
use core::ptr;
use machine::{Atomic, Cpus, Flush, Frame, Memory, Ordering, PAGE_SIZE, VaRange, pte};

/// The result of a removal of a page's mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// True if the page has been written since it was last clean.
    pub dirty: bool,
    /// True if the page has been used since the last look.
    pub referenced: bool,
    /// The number of mappings removed.
    pub mappings: usize,
    /// The number of times that a slot's lock was taken first and the page's list looked at again.
    pub retries: usize,
    /// True if a mapping was left, since its memory is locked or its page is not given up: never by
    /// [`Vm::remove_all`].
    pub is_locked: bool,
}

/// The way in which mappings are removed.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// The slot of the swap space that has the page instead; each mapping gets a reference.
    pub(crate) slot: Option<u32>,
    /// True if the removal ends at a mapping that is locked in memory, which stays. A dirty page
    /// then stays dirty: a task that writes it back meanwhile must see that at any time.
    pub(crate) reclaims: bool,
    /// True if the removal ends at a mapping whose page is not given up ([`Pmap::forget`]); the
    /// mapping stays.
    pub(crate) forgets: bool,
}

impl How {
    /// Removes all mappings of the page.
    pub(crate) const ALL: How = How {
        slot: None,
        reclaims: false,
        forgets: false,
    };
    /// Ends the removal at a mapping that is locked in memory, for a reclaimer.
    pub(crate) const RECLAIM: How = How {
        reclaims: true,
        ..How::ALL
    };

    /// Returns true if the mapping at the start of `part` is left alone.
    pub(super) fn spares<S: System>(self, part: &Part<'_, S>) -> bool {
        let stays = |at: Mapped<'_, S>| at.flags.has(Flags::LOCKED);
        self.reclaims && part.first().is_some_and(stays)
    }
}

/// The result for one mapping.
enum Fate {
    /// It is gone.
    Taken,
    /// It stays.
    Spared,
}

/// The result for the first mapping on a page's list.
enum Step<S: System> {
    /// It is gone, or has been spared.
    Taken,
    /// There is none, or it stays, and so do all behind it.
    Done,
    /// It is cleared, and its list entry is about to go.
    Flushing,
    /// Other tasks hold locks that it needs. Has a reference to its pmap, and its address.
    Busy(Arc<Pmap<S>>, VaRange),
}

impl<S: System> Vm<S> {
    /// Removes every mapping of a page. When it returns, no page table and no TLB
    /// translates to it, whichever task removed the mapping; the page's dirty and referenced
    /// bits are returned (and cleared).
    ///
    /// O(mappings), plus the wait for removals under way. The caller holds no lock and
    /// is in no delayed-invalidation block.
    ///
    /// # Panics
    /// If the page is another VM's.
    pub fn remove_all(&self, hold: &Hold<S>) -> Removed {
        hold.check(self);
        self.remove_as(hold.frame(), hold.entry(), How::ALL)
    }

    /// Removes all mappings of a page as `how` says; the caller holds the page, and `owned` is its
    /// object's entry if the caller owns that, too. If `how` spares mappings, some may be left.
    pub(crate) fn remove_as(&self, frame: Frame, owned: Option<NonZeroUsize>, how: How) -> Removed {
        let page = self.page(frame);
        machine::invariant!(
            S::Machine: page.references() > 0,
            "the page may go while its mappings do"
        );
        let reverse = self.invalidation().reverse();
        self.walk(frame);
        let of_object = self.wait_for_object(frame, owned, |of| of.take_all(frame, how));
        let is_object = of_object.is_some();
        let mut removed = of_object.unwrap_or_default();
        let list = self.take_listed(frame, how, &mut removed);
        // A task that takes a mapping off the list notes its bits first.
        removed.harvest(list, how);
        // Mappings that others had already taken off the list may still be cached.
        self.invalidation()
            .wait(&reverse, frame, &page.invalidation);
        if is_object {
            // Mappings that were never listed have their bits noted when they are flushed.
            removed.harvest(self.lock_pv(frame), how);
        }
        drop(reverse);
        removed
    }

    /// Removes the mappings on the page's list, from the newest on, up to the first that must be
    /// spared; returns the list. Their bits are not harvested yet.
    fn take_listed(&self, frame: Frame, how: How, removed: &mut Removed) -> PvList<'_, S> {
        let mut round = 0;
        let mut list = self.lock_pv(frame);
        loop {
            match self.take_first(frame, &mut list, how, removed) {
                Step::Taken => {}
                Step::Done => return list,
                // A member has cleared its entry, and must flush before it lets go.
                Step::Flushing => {
                    drop(list);
                    S::Machine::relax(round);
                    round += 1;
                    list = self.lock_pv(frame);
                }
                // The order is slot first, and the pages of a superpage ascending: release the
                // list, lock all in order, and look again. The mapping may have gone meanwhile,
                // and others may have come.
                Step::Busy(pmap, at) => {
                    drop(list);
                    removed.retries += 1;
                    if let Some(fate) = pmap.take_at(frame, at, how) {
                        removed.count(fate);
                    }
                    // The pmap's own locks must be free if this was the last reference to it.
                    drop(pmap);
                    list = self.lock_pv(frame);
                }
            }
        }
    }

    /// Removes the first mapping on `list`, that of the page in `frame`, if that needs no waiting.
    fn take_first(
        &self,
        frame: Frame,
        list: &mut PvList<'_, S>,
        how: How,
        removed: &mut Removed,
    ) -> Step<S> {
        let Some(pv) = list.first().filter(|_| !removed.is_locked) else {
            return Step::Done;
        };
        // SAFETY: `list`, whose first entry this is, holds the PV lock.
        let (members, address) = unsafe { (self.members_of(pv), self.address_of(pv)) };
        // No task has given up a page with several mappings. SAFETY: `members` are of the entry.
        if how.forgets && unsafe { self.count_of(pv, &members) } > 1 {
            removed.is_locked = true;
            return Step::Done;
        }
        let are_kin = members.are_kin();
        let owner = if are_kin {
            members.one_of_kin(self.machine(), frame, address)
        } else {
            members.alone()
        };
        let Some(owner) = owner else {
            if are_kin {
                return Step::Flushing;
            }
            // SAFETY: `members` holds the lock of the family, which has several members.
            removed.mappings += unsafe { self.take_from(&members, list, pv, how) };
            return Step::Taken;
        };
        let at = VaRange::sized(address, PAGE_SIZE);
        // SAFETY: a pmap outlives its PV entries, and this one is on the list.
        let (now, slot) = unsafe { owner.get::<S>() };
        if let Some(_lock) = now.try_lock_tables()
            && let Some(mut locked) = now.tree.at(Place::small(slot, address), at).try_lock()
            && let Some(mut part) = locked.parts().next()
            && (!are_kin || now.maps(&part, frame))
            && now.single_out(&mut part, how)
        {
            // The slot is locked, so it stays alone, and its tables may go now.
            drop(members);
            removed.count(now.take_away(&mut part, list, how));
            return Step::Taken;
        }
        // SAFETY: a pmap outlives its PV entries, and this one is on the list, which is locked.
        Step::Busy(unsafe { owner.keep() }, at)
    }

    /// Clears and flushes the mapping of `pv`, the first on `list`, whose table `members` share,
    /// and returns the number of mappings that this removed. The caller's hold keeps the page.
    ///
    /// # Safety
    /// `members` are those of `pv`, a locked family with several members.
    unsafe fn take_from(
        &self,
        members: &Members<'_, S::Machine>,
        list: &mut PvList<'_, S>,
        pv: Pv,
        how: How,
    ) -> usize {
        let machine = self.machine();
        // SAFETY: `list`, which has the entry, holds the PV lock.
        let (leaf, address) = unsafe { (pv.leaf(machine), pv.address(machine)) };
        if let Some(slot) = how.slot {
            self.retain_swapped(slot);
        }
        let next = how.slot.map_or(0, entry::swapped);
        // SAFETY: the leaf table of a mapping, which stays while its PV entry is listed.
        let entry = unsafe { machine.word(leaf, pte::index(address, 0)) };
        machine::invariant!(
            S::Machine: members.count() > 1,
            "a table of one slot's changes under its lock"
        );
        // AcqRel: as in `Pmap::clear`.
        let old = entry.swap(next, Ordering::AcqRel);
        debug_assert!(
            entry::kind(old) == Kind::Private && ptr::eq(list.page(), self.page(pte::frame(old))),
            "another page was mapped than was found"
        );
        list.set_flags(Page::<S>::harvest(old));
        // SAFETY: the mapping's, so it is on this list.
        unsafe { list.remove(machine, pv) };
        for member in members.all() {
            // SAFETY: a member has not left, since the family is locked.
            let (pmap, slot) = unsafe { member.get::<S>() };
            machine::invariant!(
                S::Machine: slot.size() == Size::Shared,
                "a member's table is its own"
            );
            slot.add(Kind::Private, -1);
            if next != 0 {
                slot.add(Kind::Swapped, 1);
            }
            pmap.count_resident(-1);
            pmap.flush(Flush::Range(VaRange::sized(address, PAGE_SIZE)));
        }
        self.release_page(pte::frame(old));
        members.count()
    }
}

impl Removed {
    /// Counts a mapping that was taken away, or notes that one was spared.
    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Taken => self.mappings += 1,
            Fate::Spared => self.is_locked = true,
        }
    }

    /// Collects the page's bits under the lock of its list.
    #[inline]
    fn harvest<S: System>(&mut self, mut list: PvList<'_, S>, how: How) {
        let dirty = Page::<S>::DIRTY;
        let referenced = Page::<S>::REFERENCED;
        let flags = list.take_flags(dirty | referenced);
        if how.reclaims {
            list.set_flags(flags & dirty);
        }
        self.dirty |= flags & dirty != 0;
        self.referenced |= flags & referenced != 0;
    }
}

impl<S: System> Pmap<S> {
    /// Clears and flushes the mapping of `frame` at `at`, if there is one.
    fn take_at(&self, frame: Frame, at: VaRange, how: How) -> Option<Fate> {
        let _lock = self.lock_tables();
        let mut locked = self.tree.over(at).lock_whole();
        let mut part = locked.parts().next()?;
        if !self.maps(&part, frame) || !self.own_alone(&mut part) {
            return None;
        }
        if how.spares(&part) {
            return Some(Fate::Spared);
        }
        self.demote(&mut part);
        let mut list = self.vm.lock_pv(frame);
        Some(self.take_away(&mut part, &mut list, how))
    }

    /// Returns true if the page at the start of `part` is the one in `frame`.
    pub(super) fn maps(&self, part: &Part<'_, S>, frame: Frame) -> bool {
        self.entry_at(part).maps(frame)
    }

    /// Maps the locked part by an entry of a leaf table that is its slot's own, unless it must be
    /// spared. Returns false if that needs waiting. The list of its page is locked, and so is its
    /// family, which has one member.
    fn single_out(&self, part: &mut Part<'_, S>, how: How) -> bool {
        if part.size() == Size::Shared {
            self.take_over(part);
        }
        how.spares(part) || self.try_demote(part)
    }

    /// Clears and flushes the mapping that is all of the locked `part`, under both locks, unless it
    /// must be spared. With the slot's last page its PV tables are freed: memory is short.
    fn take_away(&self, part: &mut Part<'_, S>, list: &mut PvList<'_, S>, how: How) -> Fate {
        debug_assert_eq!(
            part.range().len(),
            PAGE_SIZE,
            "more than a page is taken away"
        );
        if how.spares(part) {
            return Fate::Spared;
        }
        // The caller's hold keeps the page.
        match how {
            How { forgets: true, .. } => {
                if !self.forget(part, list) {
                    return Fate::Spared;
                }
            }
            How { slot, .. } => {
                slot.inspect(|&slot| self.vm.retain_swapped(slot));
                self.take_mapping(part, list, slot.map_or(0, entry::swapped));
            }
        }
        if part.slot().resident() == 0 {
            self.free_pv_tables(part);
        }
        self.trim_chunks();
        Fate::Taken
    }

    /// Removes the mapping from the table and the list, and drops its reference.
    fn take_mapping(&self, part: &mut Part<'_, S>, list: &mut PvList<'_, S>, next: u64) {
        let old = self.clear(part, part.range().start, next);
        list.set_flags(Page::<S>::harvest(old));
        self.drop_listed(part, list, old);
    }

    /// Flushes the mapping at the start of `part`, whose entry was `old` and is cleared, takes it
    /// off its page's list, which is locked, and drops its reference.
    pub(super) fn drop_listed(&self, part: &Part<'_, S>, list: &mut PvList<'_, S>, old: u64) {
        self.check_list(list, old);
        let at = VaRange::sized(part.range().start, PAGE_SIZE);
        machine::invariant!(
            S::Machine: self.bits_at(part) & pte::PRESENT == 0,
            "a page is taken off its list that is mapped"
        );
        self.flush(Flush::Range(at));
        if is_kin(old) {
            return self.let_go_listed(part, list, at.start, pte::frame(old));
        }
        // SAFETY: the mapping's, so it is on this list.
        unsafe { self.unlist(list, part, at.start) };
        self.vm.release_page(pte::frame(old));
    }

    /// Puts `next` in the place of the mapping at the start of `part`, whose page's list is
    /// locked, and flushes it. The mapping's reference to the frame is the caller's.
    #[inline]
    pub(super) fn detach(
        &self,
        part: &mut Part<'_, S>,
        list: &mut PvList<'_, S>,
        next: u64,
    ) -> Frame {
        let page = VaRange::sized(part.range().start, PAGE_SIZE);
        let old = self.clear(part, page.start, next);
        self.check_list(list, old);
        debug_assert!(!is_kin(old), "the entry on the list is kin's");
        list.set_flags(Page::<S>::harvest(old));
        // SAFETY: the mapping's, so it is on this list.
        unsafe { self.unlist(list, part, page.start) };
        self.flush(Flush::Range(page));
        pte::frame(old)
    }
}

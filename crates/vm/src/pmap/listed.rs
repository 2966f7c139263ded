//! Mappings on the lists of their pages: putting them there, taking them off, and reading their
//! entries.
//!
//! This module chooses between PV entries in tables ([`crate::pv`]) and entries from chunks
//! ([`crate::system::PvChunks`]).

use super::Pmap;
use super::entry::Entry;
use crate::page::PvList;
use crate::pv::{LockedFamily, Owner, Pv};
use crate::system::{PvChunks, System};
use crate::tree::{Part, Slot};
use crate::vm::Vm;
use alloc::sync::Arc;
use machine::{Atomic, Atomics, Frame, Memory, Ordering, PAGE_SIZE, Platform, pte};

/// The slots that have a mapping.
pub(super) enum Members<'a, M: Platform> {
    /// The slots that have its table.
    Family(LockedFamily<'a, M>),
    /// One slot.
    One([Owner; 1]),
}

impl Owner {
    /// The pmap and the slot.
    ///
    /// # Safety
    /// It is a member of a family, and stays one, or keeps its pmap otherwise, while they are used.
    pub(in crate::pmap) unsafe fn get<'a, S: System>(self) -> (&'a Pmap<S>, &'a Slot<S>) {
        // SAFETY: a pmap outlives its membership, and its slots live as long.
        unsafe { (&*self.pmap.cast(), &*self.slot.cast()) }
    }

    /// A counted reference to the pmap.
    ///
    /// # Safety
    /// It is a member of a family, and stays one, or keeps its pmap otherwise, during the call.
    pub(super) unsafe fn keep<S: System>(self) -> Arc<Pmap<S>> {
        let pmap = self.pmap.cast::<Pmap<S>>();
        // SAFETY: pmaps live in `Arc`s, and this one is there, as the caller says.
        unsafe {
            Arc::increment_strong_count(pmap);
            Arc::from_raw(pmap)
        }
    }
}

impl<M: Platform> Members<'_, M> {
    /// The only member, if there is only one.
    #[inline]
    pub(super) fn alone(&self) -> Option<Owner> {
        match self {
            Members::Family(family) => family.alone(),
            Members::One([owner]) => Some(*owner),
        }
    }

    /// A member that maps the page in `frame` at `address`, if there is one; otherwise a
    /// member that mapped it is about to let go of it.
    pub(super) fn one_of_kin(&self, machine: &M, frame: Frame, address: usize) -> Option<Owner> {
        let Members::Family(family) = self else {
            return None;
        };
        let has_page = |&(_, leaf): &(Owner, Frame)| {
            // SAFETY: a leaf table of a member, which stays while the family is locked.
            let bits = unsafe { machine.word(leaf, pte::index(address, 0)) };
            // Acquire: pairs with the release where the entry is written.
            Entry::decode(bits.load(Ordering::Acquire)).maps(frame)
        };
        family.kin().find(has_page).map(|(owner, _)| owner)
    }

    /// Returns true if each has a leaf table of its own.
    pub(super) fn are_kin(&self) -> bool {
        matches!(self, Members::Family(family) if family.are_kin())
    }

    /// The entries for `address` in the members' own leaf tables.
    pub(super) fn words_of_kin<'m>(
        &self,
        machine: &'m M,
        address: usize,
    ) -> impl Iterator<Item = &'m M::AtomicU64> {
        let family = match self {
            Members::Family(family) => Some(family.kin()),
            Members::One(_) => None,
        };
        let index = pte::index(address, 0);
        let leaves = family.into_iter().flatten();
        // SAFETY: leaf tables of members, which stay while the family is locked.
        leaves.map(move |(_, leaf)| unsafe { machine.word(leaf, index) })
    }

    /// All members.
    pub(super) fn all(&self) -> impl Iterator<Item = Owner> {
        let (family, one) = match self {
            Members::Family(family) => (Some(family.members()), None),
            Members::One([owner]) => (None, Some(*owner)),
        };
        family.into_iter().flatten().chain(one)
    }

    /// The number of members.
    pub(super) fn count(&self) -> usize {
        match self {
            Members::Family(family) => family.count(),
            Members::One(_) => 1,
        }
    }
}

impl<S: System> Pmap<S> {
    /// Puts a mapping at `address` of `part`, which is prepared, and where nothing is mapped, on
    /// `list`, its page's.
    #[inline]
    pub(super) fn list(&self, list: &mut PvList<'_, S>, part: &Part<'_, S>, address: usize) {
        let machine = self.vm.machine();
        let pv = match self.chunks() {
            Some(chunks) => chunks.take(address),
            None => part.pv(address),
        };
        // SAFETY: nothing is mapped here, so the entry is on no list.
        unsafe { list.insert(machine, pv) };
        debug_assert!(
            part.slot_range().contains(address),
            "another slot's page is listed"
        );
    }

    /// Takes the mapping at `address` of `part` off `list`, its page's.
    ///
    /// # Safety
    /// The mapping is on `list`.
    #[inline]
    pub(super) unsafe fn unlist(
        &self,
        list: &mut PvList<'_, S>,
        part: &Part<'_, S>,
        address: usize,
    ) {
        if let Some(chunks) = self.chunks() {
            return chunks.unlist(list, address);
        }
        // SAFETY: the mapping's, so it is on this list.
        unsafe { list.remove(self.vm.machine(), part.pv(address)) };
    }

    /// Makes the mapping at `from` of `part`, which is on `list`, one at the start of `target`,
    /// where nothing is mapped. The target is prepared.
    ///
    /// # Safety
    /// The mapping at `from` is on `list`.
    pub(super) unsafe fn relist(
        &self,
        list: &mut PvList<'_, S>,
        part: &Part<'_, S>,
        from: usize,
        target: &Part<'_, S>,
    ) {
        let machine = self.vm.machine();
        let to = target.range().start;
        debug_assert!(
            from != to && part.slot_range().contains(from),
            "a mapping moves from {from:#x}, in another slot"
        );
        if let Some(chunks) = self.chunks() {
            return chunks.relist(list, from, to);
        }
        // SAFETY: nothing is mapped at the one, the other is the mapping's on this list.
        unsafe {
            list.insert(machine, target.pv(to));
            list.remove(machine, part.pv(from));
        }
    }
}

impl<S: System> Vm<S> {
    /// The address that the entry's mapping maps.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    #[inline]
    pub(super) unsafe fn address_of(&self, pv: Pv) -> usize {
        // SAFETY: the caller holds the PV lock, so the entry's table or chunk is there.
        let address = unsafe {
            match self.pv_chunks() {
                Some(chunks) => chunks.address(self.machine(), pv),
                None => pv.address(self.machine()),
            }
        };
        debug_assert!(
            address < pte::USER_END && address.is_multiple_of(PAGE_SIZE),
            "{pv:?} is of no page: {address:#x}"
        );
        address
    }

    /// The slots whose mappings the entry stands for.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry, as long as the result is
    /// used.
    #[inline]
    pub(super) unsafe fn members_of(&self, pv: Pv) -> Members<'_, S::Machine> {
        // SAFETY: the caller holds the PV lock while it uses the result, so the owners stay.
        unsafe {
            match self.pv_chunks() {
                Some(chunks) => Members::One([self.owner_of(chunks, pv)]),
                None => Members::Family(pv.family(self.machine()).lock()),
            }
        }
    }

    /// The number of mappings that the entry stands for.
    ///
    /// # Safety
    /// `members` are its members, as [`Vm::members_of`] says.
    pub(super) unsafe fn count_of(&self, pv: Pv, members: &Members<'_, S::Machine>) -> usize {
        if members.are_kin() {
            // SAFETY: the caller holds the PV lock.
            unsafe { pv.count(self.machine()) }.into()
        } else {
            members.count()
        }
    }

    /// The page-table word of the entry's mapping, unless a superpage maps the page.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    #[inline]
    pub(super) unsafe fn word_of(&self, pv: Pv) -> &<S::Machine as Atomics>::AtomicU64 {
        // SAFETY: the caller holds the PV lock, so the mapping is there, and its leaf table with
        // it.
        let (leaf, address) = unsafe {
            let address = self.address_of(pv);
            let leaf = match self.pv_chunks() {
                Some(chunks) => {
                    let (pmap, _) = self.owner_of(chunks, pv).get::<S>();
                    // Acquire: pairs with the release where the table was put there.
                    pte::frame(pmap.superpage(address).load(Ordering::Acquire))
                }
                None => pv.leaf(self.machine()),
            };
            (leaf, address)
        };
        // SAFETY: the leaf table of a mapping, which stays as said above.
        unsafe { self.machine().word(leaf, pte::index(address, 0)) }
    }
}

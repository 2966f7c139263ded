//! PV entries from chunks ([`PvChunks`]), as FreeBSD's pmap has them.

use super::{Entry, Pmap};
use crate::error::Error;
use crate::flags::Flags;
use crate::frames::Content;
use crate::page::PvList;
use crate::pv::{Owner, Pv};
use crate::system::{PvChunks, System, Victim};
use crate::tree::{Kind, Part};
use crate::vm::Vm;
use core::ptr;
use machine::{Atomics, Memory, PAGE_SIZE, VaRange, pte};

/// The most addresses gathered from one chunk.
const GATHERED: usize = 168;

/// The chunks of a pmap.
pub(super) struct OwnChunks<'a, S: System> {
    pmap: &'a Pmap<S>,
    of_all: &'a S::PvChunks,
    own: &'a <S::PvChunks as PvChunks<S::Machine>>::Pmap,
}

impl<S: System> Pmap<S> {
    /// Its chunks, if PV entries are not in tables.
    #[inline]
    pub(super) fn chunks(&self) -> Option<OwnChunks<'_, S>> {
        Some(OwnChunks {
            pmap: self,
            of_all: self.vm.pv_chunks()?,
            own: self.chunks.as_ref()?,
        })
    }
}

impl<S: System> OwnChunks<'_, S> {
    /// Does all that can fail before a mapping is made at the start of `part`.
    pub(super) fn prepare(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        let (pmap, machine) = (self.pmap, self.pmap.vm.machine());
        pmap.prepare_leaf(part)?;
        if !self.of_all.has_room(machine, self.own) {
            let frame = pmap.vm.allocate(Content::Any)?;
            let memory = machine.direct_map(frame);
            S::Machine::label(memory.as_ptr().cast(), PAGE_SIZE, "PV chunk");
            let owner = ptr::from_ref(pmap).cast();
            let tag = pmap.tag;
            self.of_all.add(machine, self.own, frame, owner, tag);
        }
        Ok(())
    }

    /// An entry for a mapping at `address`, which is prepared.
    pub(super) fn take(&self, address: usize) -> Pv {
        self.of_all.take(self.pmap.vm.machine(), self.own, address)
    }

    /// Takes the pmap's mapping at `address` off its list. O(mappings of the page).
    pub(super) fn unlist(&self, list: &mut PvList<'_, S>, address: usize) {
        debug_assert!(
            address.is_multiple_of(PAGE_SIZE),
            "{address:#x} is no page's"
        );
        let (pv, machine) = (self.find(list, address), self.pmap.vm.machine());
        // SAFETY: found on this list; then it is this pmap's and on none.
        unsafe {
            list.remove(machine, pv);
            self.of_all.give(machine, self.own, pv);
        }
    }

    /// Records that the mapping at `from`, which is on the list, is now at `to`.
    pub(super) fn relist(&self, list: &PvList<'_, S>, from: usize, to: usize) {
        let (pv, machine) = (self.find(list, from), self.pmap.vm.machine());
        // SAFETY: the list is locked.
        unsafe { self.of_all.set_address(machine, pv, to) };
    }

    /// The entry of the pmap's mapping at `address`, which is on the list.
    fn find(&self, list: &PvList<'_, S>, address: usize) -> Pv {
        let (chunks, machine) = (self.of_all, self.pmap.vm.machine());
        // SAFETY: the list is locked.
        let mut found = list.iter(machine).filter(|&pv| unsafe {
            ptr::eq(chunks.owner(machine, pv).cast(), self.pmap)
                && chunks.address(machine, pv) == address
        });
        found.next().expect("a mapping is on its page's list")
    }
}

impl<S: System> Pmap<S> {
    /// Frees the chunks without taken entries. Under the pmap's lock, or alone.
    #[inline]
    pub(super) fn trim_chunks(&self) {
        if let Some(chunks) = self.chunks() {
            let free = |frame| self.vm.free(frame, Content::Any);
            chunks.of_all.trim(self.vm.machine(), chunks.own, free);
        }
    }

    /// Removes the mappings whose entries are in the victim's chunk, as far as they can be made
    /// again, and returns their number.
    pub(super) fn empty(&self, victim: Victim) -> usize {
        let (mut addresses, mut count) = ([0; GATHERED], 0);
        {
            let _lock = self.lock_tables();
            let see = |address: usize| {
                debug_assert!(
                    address < pte::USER_END && address.is_multiple_of(PAGE_SIZE),
                    "{address:#x} is no page's"
                );
                if count < GATHERED {
                    addresses[count] = address;
                    count += 1;
                }
            };
            if let Some(chunks) = self.chunks() {
                let machine = self.vm.machine();
                chunks.of_all.mappings_of(machine, chunks.own, victim, see);
            }
        }
        // The mappings may have changed meanwhile: then this removes others that may go, or none.
        let gone = addresses[..count]
            .iter()
            .filter(|&&at| self.spare_mapping(at));
        gone.count()
    }

    /// Removes the mapping of an object's page at `address`, if there is one that is not locked in
    /// memory; the page stays with its object. Returns true if it did.
    fn spare_mapping(&self, address: usize) -> bool {
        let range = VaRange::sized(address, PAGE_SIZE);
        let place = self.tree.find(address);
        if place.level > 0 {
            return false;
        }
        let mut removal = self.removal();
        if removal.lock(place, range).is_err() {
            return false;
        }
        let may_go = |part: Part<'_, S>| {
            let is_locked = part.first().is_some_and(|at| at.flags.has(Flags::LOCKED));
            let kind = match self.entry_at(&part) {
                Entry::Page { kind, .. } => Some(kind),
                Entry::Empty | Entry::Swapped(_) => None,
            };
            kind == Some(Kind::Object) && !is_locked
        };
        let goes = removal.locked.parts().all(may_go);
        if goes {
            removal.pages();
        }
        goes
    }
}

impl<S: System> Vm<S> {
    /// The owner of an entry of `chunks`: the pmap, and the slot at the address.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(super) unsafe fn owner_of(&self, chunks: &S::PvChunks, pv: Pv) -> Owner {
        let machine = self.machine();
        // SAFETY: the caller holds the PV lock, so the entry's pmap is there: it outlives its
        // entries.
        unsafe {
            let pmap: *const Pmap<S> = chunks.owner(machine, pv).cast();
            let place = (*pmap).tree.find(chunks.address(machine, pv));
            Owner {
                pmap: pmap.cast(),
                slot: ptr::from_ref(place.slot).cast(),
            }
        }
    }
}

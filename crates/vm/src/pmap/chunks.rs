//! PV entries from chunks ([`PvChunks`]), as FreeBSD's pmap has them.

use super::{Entry, Pmap};
use crate::error::Error;
use crate::flags::Flags;
use crate::frames::Content;
use crate::page::PvList;
use crate::policy::{MapLocking, PvChunks, System, Victim};
use crate::pv::{Owner, Pv};
use crate::tree::{Kind, Part};
use crate::vm::Vm;
use core::ptr;
use machine::{Atomics, Memory, PAGE_SIZE, VaRange};

/// Addresses gathered from one chunk.
const GATHERED: usize = 168;

impl<S: System> Pmap<S> {
    /// Does all that can fail before a mapping is made at the start of `part`.
    pub(super) fn prepare_entry(&self, part: &mut Part<'_, S>) -> Result<(), Error> {
        self.prepare_leaf(part)?;
        let (chunks, machine) = (self.vm.pv_chunks(), self.vm.machine());
        if !chunks.has_room(machine, &self.chunks) {
            let frame = self.vm.allocate(Content::Any)?;
            let memory = machine.direct_map(frame);
            S::Machine::label(memory.as_ptr().cast(), PAGE_SIZE, "PV chunk");
            let owner = ptr::from_ref(self).cast();
            chunks.add(machine, &self.chunks, frame, owner, self.tag);
        }
        Ok(())
    }

    pub(super) fn take_entry(&self, address: usize) -> Pv {
        let chunks = self.vm.pv_chunks();
        chunks.take(self.vm.machine(), &self.chunks, address)
    }

    /// Takes this pmap's mapping at `address` off the list that it is on. O(mappings of the page).
    pub(super) fn unlist_from_chunk(&self, list: &mut PvList<'_, S>, address: usize) {
        let pv = self.find_entry(list, address);
        // SAFETY: found on this list; then it is this pmap's and on none.
        unsafe {
            list.remove(self.vm.machine(), pv);
            let chunks = self.vm.pv_chunks();
            chunks.give(self.vm.machine(), &self.chunks, pv);
        }
    }

    /// Says that the mapping at `from`, which is on the list, is at `to`.
    pub(super) fn move_entry(&self, list: &PvList<'_, S>, from: usize, to: usize) {
        let pv = self.find_entry(list, from);
        // SAFETY: the list is locked.
        unsafe { self.vm.pv_chunks().set_address(self.vm.machine(), pv, to) };
    }

    /// The entry of this pmap's mapping at `address`, which is on the list.
    fn find_entry(&self, list: &PvList<'_, S>, address: usize) -> Pv {
        let (chunks, machine) = (self.vm.pv_chunks(), self.vm.machine());
        // SAFETY: the list is locked.
        let mut found = list.iter(machine).filter(|&pv| unsafe {
            ptr::eq(chunks.owner(machine, pv).cast(), self)
                && chunks.address(machine, pv) == address
        });
        found.next().expect("a mapping is on its page's list")
    }

    /// Frees the chunks without taken entries. Under the pmap's lock, or alone.
    #[inline]
    pub(super) fn trim_chunks(&self) {
        if self.vm.pv_chunks().is_used() {
            let free = |frame| self.vm.free(frame, false);
            let chunks = self.vm.pv_chunks();
            chunks.trim(self.vm.machine(), &self.chunks, free);
        }
    }

    /// Takes away the mappings whose entries are in the victim's chunk, as far as they can be made
    /// again; how many went.
    pub(super) fn empty(&self, victim: Victim) -> usize {
        let (mut addresses, mut count) = ([0; GATHERED], 0);
        {
            let _lock = self.locking.pmap();
            let see = |address| {
                if count < GATHERED {
                    addresses[count] = address;
                    count += 1;
                }
            };
            let chunks = self.vm.pv_chunks();
            chunks.mappings_of(self.vm.machine(), &self.chunks, victim, see);
        }
        // The mappings may have changed meanwhile: then others go, if they may, or none.
        let gone = addresses[..count]
            .iter()
            .filter(|&&at| self.spare_mapping(at));
        gone.count()
    }

    /// Takes the mapping of an object's page at `address` away, if there is one that is not locked
    /// in memory; whether it did. The page stays with its object.
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
    /// The owner of a chunk's entry: the pmap, and the slot at the address.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(super) unsafe fn owner_of(&self, pv: Pv) -> Owner {
        let (chunks, machine) = (self.pv_chunks(), self.machine());
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

//! The page fault.
//!
//! Steps that may take long (zeroing, waiting for a pager) hold no lock: a fault looks under the
//! lock of the page's slot for its needs, releases the lock, gets them, and looks again. (A frame
//! to copy to is allocated under the lock; if none is free the fault fails, and is tried again when
//! one is.) A first touch of private memory needs a page of zeroes, which is allocated before the
//! slot is locked if the access looks like a first touch ([`Space::touch`], [`Supply::guess`]). In
//! a slot that is to become a superpage the place of the page decides its frame, which is zeroed
//! under the lock.
//!
//! An object may be truncated during a fault. The truncation changes the object first, and then
//! locks the slots where the page may be mapped: it finds the mapping of a fault that had the slot
//! first, and a fault that has it later finds the object without the page. Where mappings are
//! listed ([`crate::system::ObjectPages`]) the fault lists its mapping first, checks that the page
//! is still the object's, and only then writes the table. Private copies are found by their slots
//! ([`Object::set_size`]).

use super::gate::Guard;
use super::supply::{Got, Need, ReadAhead, Supply, pattern};
use super::touch::Touch;
use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::frames::Content;
use crate::object::{Attachment, Object};
use crate::pmap::Entry;
use crate::prot::Prot;
use crate::system::{Change, Invalidation, Op, PageQueues, System};
use crate::tree::{Kind, Locked, Part, Place, Size};
use core::{mem, ptr};
use machine::{Access, Frame, Memory, PageFault, VaRange, pte};

/// The need to be met before the page can be mapped; none if it is mapped.
type Answer<S> = Result<Option<Need<S>>, Error>;

impl<S: System> Space<S> {
    /// Handles a fault of a task in this space; then the access may be tried again. Fails if the
    /// access is not allowed ([`Error::Segv`]), or its page is not available ([`Error::Bus`],
    /// [`Error::OutOfMemory`]).
    ///
    /// The page's slot is locked while the mapping is made, so an unmap waits for the
    /// faults in it, and faults in other slots do not.
    pub fn fault(&self, fault: PageFault) -> Result<(), Error> {
        if !(LOWEST..HIGHEST).contains(&fault.address) {
            return Err(Error::Segv(fault));
        }
        let page = VaRange::page(fault.address);
        let tree = &self.pmap.tree;
        let Some(place) = tree.find_small(page.start) else {
            return self.fault_at(fault, tree.find(page.start), page, Got::Nothing);
        };
        match self.touch(fault, place, page) {
            Touch::Mapped => Ok(()),
            Touch::Other(got) => self.fault_at(fault, place, page, got),
        }
    }

    /// Resolves a fault; its first look has found `place` and allocated `got`.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn fault_at(
        &self,
        fault: PageFault,
        place: Place<'_, S>,
        page: VaRange,
        got: Got,
    ) -> Result<(), Error> {
        let before = self.vm.hand().freed();
        match self.try_fault(fault, place, page, ReadAhead::Allowed, got) {
            Ok(()) => Ok(()),
            Err(error) => self.fault_again(fault, place, page, before, error),
        }
    }

    /// Tries a fault again that has failed with `error`; `before` frames had been freed before its
    /// first try.
    #[cold]
    fn fault_again(
        &self,
        fault: PageFault,
        place: Place<'_, S>,
        page: VaRange,
        before: usize,
        error: Error,
    ) -> Result<(), Error> {
        let (mut ahead, mut first) = (ReadAhead::Allowed, Some(error));
        self.vm.with_frames_since(before, || {
            let ahead = mem::replace(&mut ahead, ReadAhead::Denied);
            loop {
                let tried = match first.take() {
                    Some(error) => Err(error),
                    None => self.try_fault(fault, place, page, ahead, Got::Nothing),
                };
                match tried {
                    Err(Error::NotMapped { .. }) if self.grow_stack(page)? => {}
                    Err(Error::NotMapped { .. }) => return Err(Error::Segv(fault)),
                    other => return other,
                }
            }
        })
    }

    /// Tries to resolve a fault; a hole is [`Error::NotMapped`]. `ahead` denies reading ahead after
    /// an earlier try has failed.
    #[inline(never)]
    fn try_fault(
        &self,
        fault: PageFault,
        place: Place<'_, S>,
        page: VaRange,
        ahead: ReadAhead,
        got: Got,
    ) -> Result<(), Error> {
        debug_assert!(page.contains(fault.address), "the fault is in another page");
        let mut supply = Supply::new(&self.vm, ahead, got);
        let mut op = self.begin(Op::Fault {
            address: fault.address,
            access: fault.access,
        });
        let address = page.start;
        if place.is_hole(page) {
            return Err(Error::NotMapped { address });
        }
        if !fault.present && matches!(got, Got::Nothing) {
            supply.guess(place.slot, fault.access);
        }
        while let Some(need) = self.resolve(fault, place, page, &mut op, &mut supply)? {
            supply.get(need)?;
        }
        Ok(())
    }

    /// Maps the page, for which `place` was found, or returns its need. The slot stays locked from
    /// the look to the mapping.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn resolve<'a>(
        &'a self,
        fault: PageFault,
        place: Place<'a, S>,
        page: VaRange,
        op: &mut Guard<'a, S>,
        supply: &mut Supply<'_, S>,
    ) -> Answer<S> {
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.pmap.lock_tables();
        let mut locked = Locked::none(&self.pmap.tree);
        locked.lock(self.pmap.tree.at(place, page))?;
        let address = page.start;
        let Some(part) = locked.parts().next() else {
            return Err(Error::NotMapped { address });
        };
        let Some(mapped) = part.first() else {
            return Err(Error::NotMapped { address });
        };
        if !mapped.flags.prot().allows(fault.access) {
            return Err(Error::Segv(fault));
        }
        let mut place = Faulting {
            flags: mapped.flags,
            object: mapped.attachment.map(|at| {
                let attachment: &Attachment<S> = at;
                (ptr::from_ref(attachment), at.index(address))
            }),
            writes: fault.access == Access::Write,
            space: self,
            op,
            part,
        };
        let bits = place.own_entry()?;
        match Entry::decode(bits) {
            Entry::Empty if place.object.is_some() => place.object(supply),
            Entry::Empty => place.zeroes(supply),
            // The entry allows it by now: this CPU's translation is an old one.
            Entry::Page { writable, .. } if writable || !place.writes => {
                self.pmap.refresh(address);
                Ok(None)
            }
            Entry::Page { .. } => place.write(bits, supply),
            Entry::Swapped(slot) => place.swapped(slot, supply),
        }
    }
}

/// A page to which an access is allowed, with its slot locked.
pub(super) struct Faulting<'a, 's, S: System> {
    pub(super) space: &'s Space<S>,
    pub(super) op: &'a mut Guard<'s, S>,
    pub(super) part: Part<'a, S>,
    pub(super) flags: Flags,
    pub(super) writes: bool,
    /// The mapped attachment, which the mapping keeps alive, and the index of the object's page.
    pub(super) object: Option<(*const Attachment<S>, u64)>,
}

impl<S: System> Faulting<'_, '_, S> {
    /// The bits of the page's entry, in a table of the slot's own if it is to change.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn own_entry(&mut self) -> Result<u64, Error> {
        let pmap = &self.space.pmap;
        let bits = pmap.bits_at(&self.part);
        let changes = self.writes || bits & pte::PRESENT == 0;
        if self.part.size() != Size::Shared || !changes {
            return Ok(bits);
        }
        pmap.own(&mut self.part)?;
        Ok(pmap.bits_at(&self.part))
    }

    /// The object that is mapped, if there is one, and the index of its page.
    fn mapped_object(&self) -> Option<(&Object<S>, u64)> {
        let (attachment, index) = self.object?;
        // SAFETY: the mapping has a reference, and the slot is locked while this lives.
        Some((unsafe { &*attachment }.object(), index))
    }

    /// The rights to the object's own page: a private store goes to a copy.
    #[inline]
    pub(super) fn object_rights(&self) -> Prot {
        let prot = self.flags.prot();
        if self.flags.has(Flags::SHARED) {
            prot
        } else {
            prot.read_only()
        }
    }

    /// The need of a fault on an object's page that is not in memory.
    fn need_object(&self) -> Option<Need<S>> {
        let (_, index) = self.object?;
        let attached = self.part.first()?.attachment?.clone();
        Some(Need::Object(attached, index, pattern(self.flags)))
    }

    /// Maps a page of zeroes.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn zeroes(mut self, supply: &mut Supply<'_, S>) -> Answer<S> {
        let (vm, pmap) = (&self.space.vm, &self.space.pmap);
        if vm.superpages().wanted(self.flags)
            && let Some(frame) = pmap.fill_in_place(&mut self.part, self.flags.prot())?
        {
            self.took(frame);
            return Ok(None);
        }
        if !supply.has_zeroes()? {
            return Ok(Some(Need::Zeroes));
        }
        self.space.pmap.prepare(&mut self.part)?;
        if let Some(frame) = supply.take_frame() {
            self.make_first(frame);
        }
        Ok(None)
    }

    /// Maps the object's page, or a copy of it to write. The page that the object shows stays as
    /// long as the slot is locked (see the pmap's module `attached`), so it is not retained.
    #[inline]
    fn object(mut self, supply: &mut Supply<'_, S>) -> Answer<S> {
        if self.space.vm.lists_objects() {
            return self.listed_object(supply);
        }
        let (vm, pmap) = (&self.space.vm, &self.space.pmap);
        let (object, index) = self.mapped_object().expect("an attached page");
        let Some(page) = object.shown(index)? else {
            return Ok(self.need_object());
        };
        let shared = self.flags.has(Flags::SHARED);
        if !self.writes || shared {
            pmap.prepare_object(&mut self.part)?;
            let rights = self.object_rights();
            pmap.make_attached(&mut self.part, page, rights);
            vm.queues().activate(page);
            self.around();
            return Ok(None);
        }
        pmap.prepare(&mut self.part)?;
        let copy = supply.room()?;
        // SAFETY: the object's page stays while its mapping is attached and locked, and no other
        // task knows the copy.
        unsafe { vm.machine().copy(page, copy) };
        vm.queues().activate(page);
        self.make_first(copy);
        Ok(None)
    }

    /// Maps an object's page in a VM that lists the mappings of objects' pages.
    #[inline(never)]
    fn listed_object(mut self, supply: &mut Supply<'_, S>) -> Answer<S> {
        let shared = self.flags.has(Flags::SHARED);
        let vm = &self.space.vm;
        let (object, index) = self.mapped_object().expect("an attached page");
        let Some(held) = object.page_in_memory(index)? else {
            return Ok(self.need_object());
        };
        // The object keeps its page until its mapping is made, or sees that mapping.
        let page = held.into_frame();
        let prepared = self.space.pmap.prepare(&mut self.part);
        prepared.inspect_err(|_| vm.release_page(page))?;
        if !self.writes || shared {
            if !self.object_page(page) {
                return Ok(Some(Need::Nothing));
            }
            vm.queues().activate(page);
            self.around();
            return Ok(None);
        }
        let copy = supply.room().inspect_err(|_| vm.release_page(page))?;
        // SAFETY: the page is held until below, and no other task knows the copy.
        unsafe { vm.machine().copy(page, copy) };
        vm.queues().activate(page);
        vm.release_page(page);
        self.make_first(copy);
        Ok(None)
    }

    /// Maps the object's page, whose reference the caller passes, if the object still has the page
    /// when the mapping is listed; no CPU reaches it before that. Returns true if it was mapped.
    pub(super) fn object_page(&mut self, page: Frame) -> bool {
        let rights = self.object_rights();
        let at = self.part.range().start;
        let holds = |part: &Part<'_, S>| {
            let attached = part.first().and_then(|mapped| mapped.attachment);
            attached.is_some_and(|to| to.object().still_has(to.index(at), page))
        };
        let pmap = &self.space.pmap;
        let made = pmap.make_if(&mut self.part, page, rights, holds);
        if !made {
            self.space.vm.release_page(page);
        }
        made
    }

    /// Lets the task write a page that is mapped read-only, by the entry `bits`.
    #[inline(never)]
    fn write(&mut self, bits: u64, supply: &mut Supply<'_, S>) -> Answer<S> {
        debug_assert!(
            bits & (pte::PRESENT | pte::WRITABLE) == pte::PRESENT,
            "a page is not mapped, or may be written already"
        );
        let (pmap, prot) = (&self.space.pmap, self.flags.prot());
        debug_assert!(self.writes && prot.writes(), "the task may not write");
        pmap.demote(&mut self.part);
        if pmap.is_only(&self.part, bits) || self.flags.has(Flags::SHARED) {
            self.space.vm.queues().activate(pte::frame(bits));
            pmap.permit(&mut self.part, bits, prot);
            pmap.promote(&mut self.part);
            return Ok(None);
        }
        let copy = supply.room()?;
        let replaced = pmap.replace(&mut self.part, bits, copy, prot);
        replaced.inspect_err(|_| self.space.vm.free_page(copy, Content::Any))?;
        self.took(copy);
        Ok(None)
    }

    /// Maps the page of a slot of the swap space, or a copy of it for a write to a page that others
    /// use. The copy is not left to the next fault: such a fault would never be short of memory
    /// itself, so with one frame left two tasks would evict each other's pages for ever.
    #[inline(never)]
    fn swapped(mut self, slot: u32, supply: &mut Supply<'_, S>) -> Answer<S> {
        let Some(page) = supply.take_swapped(slot) else {
            return Ok(Some(Need::Slot(slot, pattern(self.flags))));
        };
        let (space, vm) = (self.space, &self.space.vm);
        let frame = page.frame();
        // The entry has a reference to the slot; but the page may have been evicted again.
        if !vm.swap_space().is_some_and(|swap| swap.holds(slot, frame)) {
            return Ok(Some(Need::Slot(slot, pattern(self.flags))));
        }
        let (pmap, prot) = (&space.pmap, self.flags.prot());
        pmap.prepare(&mut self.part)?;
        pmap.forget_slot(&mut self.part);
        page.into_frame();
        machine::invariant!(
            S::Machine: vm.page(frame).references() > 0,
            "the page's reference was given away"
        );
        // With the last reference of the slot the page is this mapping's.
        vm.release_swapped(slot);
        let writable = prot.writes() && vm.is_exclusive(frame);
        let rights = if writable { prot } else { prot.read_only() };
        pmap.make(&mut self.part, frame, Kind::Private, rights);
        self.took(frame);
        if self.writes && !writable {
            let bits = pmap.bits_at(&self.part);
            self.write(bits, supply)
        } else {
            Ok(None)
        }
    }

    /// Maps a page that no other task knows yet. The slot is prepared for it.
    #[inline]
    fn make_first(&mut self, frame: Frame) {
        let (pmap, prot) = (&self.space.pmap, self.flags.prot());
        pmap.make_first(&mut self.part, frame, prot);
        self.took(frame);
    }

    /// Reports that the anonymous page in `frame` is mapped now.
    #[inline]
    fn took(&mut self, frame: Frame) {
        let vm = &self.space.vm;
        vm.queues().activate(frame);
        let change = Change::Faulted(frame, vm.gate_page(frame));
        self.space.report(self.op, change);
    }
}

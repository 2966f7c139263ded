//! The page fault.
//!
//! What may take long (zeroing, waiting for a pager) is done without a lock: a fault looks
//! under the lock of the page's slot what it needs, lets go, gets it, and looks again. A
//! first touch of private memory needs a page of zeroes, which is brought at once.
//!
//! An object may be truncated beside a fault. The fault lists its mapping first and then
//! asks whether the page is still the object's; only then it writes the table. The truncation
//! changes the object first and then removes mappings. So one of them sees the other. Of
//! private copies it locks the slots, whatever it sees there.

use super::supply::{Need, Supply};
use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::object::{Advice, Attached};
use crate::pmap::Entry;
use crate::policy::{Invalidation, MapLocking, Policies};
use crate::tree::{Flags, Kind, Mapped, Part};
use core::mem;
use machine::{Access, Frame, PAGE_SIZE, PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Handles a fault of a task in this space: afterwards the access may be tried
    /// again, or it was not allowed ([`Error::Segv`]), or its page is not to be had
    /// ([`Error::Bus`], [`Error::OutOfMemory`]).
    ///
    /// The page's slot is locked while the mapping is made, so an unmap waits for the
    /// faults in it, and faults in other slots do not.
    pub fn fault(&self, fault: PageFault) -> Result<(), Error> {
        self.vm.with_frames(|| self.try_fault(fault))
    }

    fn try_fault(&self, fault: PageFault) -> Result<(), Error> {
        let page = VaRange::sized(fault.address & !(PAGE_SIZE - 1), PAGE_SIZE);
        if page.start < LOWEST || page.end > HIGHEST {
            return Err(Error::Segv(fault));
        }
        let _read = self.pmap.locking.read();
        if self.pmap.tree.is_hole(page) {
            return Err(Error::Segv(fault));
        }
        let mut supply = Supply::new(&self.vm);
        if !fault.present {
            supply.try_zeroes();
        }
        while let Some(need) = self.resolve(fault, page, &mut supply)? {
            supply.get(need)?;
        }
        Ok(())
    }

    /// Maps the page, or says what that takes.
    fn resolve(
        &self,
        fault: PageFault,
        page: VaRange,
        supply: &mut Supply<'_, M, P>,
    ) -> Result<Option<Need<M, P>>, Error> {
        let segv = Error::Segv(fault);
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.pmap.locking.pmap();
        let mut locked = self.pmap.tree.lock(page)?;
        let part = locked.parts().next().ok_or(segv)?;
        let flags = part.first().ok_or(segv)?.flags;
        let writes = fault.access == Access::Write;
        let allowed = match fault.access {
            Access::Read => flags.prot().reads(),
            Access::Write => flags.prot().writes(),
        };
        if !allowed {
            return Err(segv);
        }
        let mut place = Faulting {
            space: self,
            part,
            flags,
            writes,
        };
        match self.pmap.entry_at(&place.part) {
            Entry::Empty if place.is_attached() => place.object(supply),
            Entry::Empty => place.zeroes(supply),
            // The entry allows it by now: this CPU's translation is an old one.
            Entry::Page { writable, .. } if writable || !writes => {
                self.pmap.refresh(page.start);
                Ok(None)
            }
            Entry::Page { frame, kind, .. } => place.write(frame, kind, supply),
            Entry::Swapped(slot) => place.swapped(slot, supply),
        }
    }
}

/// A page that an access is allowed to, its slot locked.
struct Faulting<'a, M: Platform, P: Policies<M>> {
    space: &'a Space<M, P>,
    part: Part<'a, M, P>,
    flags: Flags,
    writes: bool,
}

type Answer<M, P> = Result<Option<Need<M, P>>, Error>;

impl<M: Platform, P: Policies<M>> Faulting<'_, M, P> {
    fn is_attached(&self) -> bool {
        let attached = |at: Mapped<'_, M, P>| at.attachment.is_some();
        self.part.first().is_some_and(attached)
    }

    /// Calls `with` with the attachment and the index of the object's page, if there is one.
    fn with_object<R>(&self, with: impl FnOnce(&Attached<M, P>, u64) -> R) -> Option<R> {
        let attached = self.part.first()?.attachment?;
        Some(with(attached, attached.index(self.part.range().start)))
    }

    /// Maps a page of zeroes.
    fn zeroes(&mut self, supply: &mut Supply<'_, M, P>) -> Answer<M, P> {
        if !supply.has_zeroes()? {
            return Ok(Some(Need::Zeroes));
        }
        self.space.pmap.prepare(&mut self.part)?;
        if let Some(frame) = supply.take_frame() {
            self.make(frame, Kind::Private, self.flags.prot().writes());
        }
        Ok(None)
    }

    /// Maps the object's page, or a copy of it to write.
    fn object(&mut self, supply: &mut Supply<'_, M, P>) -> Answer<M, P> {
        let shared = self.flags.has(Flags::SHARED);
        if self.writes && !shared && !supply.has_room() {
            return Ok(Some(Need::Room));
        }
        let vm = &self.space.vm;
        let advice = self.advice();
        let found = self.with_object(|attached, index| {
            let page = attached.object().page_in_memory(index)?;
            // The object keeps its page while its mapping is made; or sees that mapping.
            Ok(match page {
                Some(page) => {
                    let frame = page.frame();
                    mem::forget(page);
                    Ok(frame)
                }
                None => Err(Need::Object(attached.clone(), index, advice)),
            })
        });
        let page = match found.expect("an attached page")? {
            Ok(frame) => frame,
            Err(need) => return Ok(Some(need)),
        };
        let prepared = self.space.pmap.prepare(&mut self.part);
        prepared.inspect_err(|_| vm.release_page(page))?;
        if !self.writes || shared {
            return Ok(self.object_page(page));
        }
        if let Some(copy) = supply.take_frame() {
            vm.machine().copy(page, copy);
            self.make(copy, Kind::Private, true);
        }
        vm.release_page(page);
        Ok(self.confirm())
    }

    /// Maps the object's page of which the caller gives a reference, if it still is the
    /// object's when the mapping is listed. No CPU reaches it before that.
    fn object_page(&mut self, page: Frame) -> Option<Need<M, P>> {
        let prot = self.flags.prot();
        let writable = self.flags.has(Flags::SHARED) && prot.writes();
        let at = self.part.range().start;
        let holds = |part: &Part<'_, M, P>| {
            let attached = part.first().and_then(|mapped| mapped.attachment);
            attached.is_some_and(|to| to.object().still_has(to.index(at), page))
        };
        let pmap = &self.space.pmap;
        if pmap.make_if(&mut self.part, page, (prot, writable), holds) {
            return None;
        }
        self.space.vm.release_page(page);
        Some(Need::Nothing)
    }

    /// Lets the task write a page that is mapped read-only.
    fn write(&mut self, frame: Frame, kind: Kind, supply: &mut Supply<'_, M, P>) -> Answer<M, P> {
        let (pmap, prot) = (&self.space.pmap, self.flags.prot());
        let ours = kind == Kind::Private && self.space.vm.is_exclusive(frame);
        if ours || self.flags.has(Flags::SHARED) {
            pmap.permit(&mut self.part, prot);
            return Ok(None);
        }
        let Some(copy) = supply.take_frame() else {
            return Ok(Some(Need::Room));
        };
        let replaced = pmap.replace(&mut self.part, copy, prot);
        replaced.inspect_err(|_| self.space.vm.release_page(copy))?;
        Ok(self.confirm())
    }

    /// Maps the page that is in a slot of the swap space. For writing it takes another fault,
    /// unless the page is nobody else's.
    fn swapped(&mut self, slot: u32, supply: &mut Supply<'_, M, P>) -> Answer<M, P> {
        let Some(page) = supply.take_swapped(slot) else {
            return Ok(Some(Need::Slot(slot)));
        };
        let (space, vm) = (self.space, &self.space.vm);
        let frame = page.frame();
        // The entry has a reference of the slot; but the page may have been evicted again.
        if !vm.swap_space().is_some_and(|swap| swap.holds(slot, frame)) {
            return Ok(Some(Need::Slot(slot)));
        }
        space.pmap.prepare(&mut self.part)?;
        space.pmap.forget_slot(&mut self.part);
        mem::forget(page);
        self.make(frame, Kind::Private, false);
        vm.release_swapped(slot);
        if self.flags.prot().writes() && vm.is_exclusive(frame) {
            space.pmap.permit(&mut self.part, self.flags.prot());
        }
        Ok(None)
    }

    /// Maps a page of which the caller gives a reference. It is prepared.
    fn make(&mut self, frame: Frame, kind: Kind, writable: bool) {
        let prot = self.flags.prot();
        let pmap = &self.space.pmap;
        pmap.make(&mut self.part, frame, kind, prot, writable);
    }

    /// Takes a private copy back if its place has gone from the object meanwhile.
    fn confirm(&mut self) -> Option<Need<M, P>> {
        let holds = self.with_object(|attached, index| index < attached.object().pages());
        if holds.unwrap_or(true) {
            return None;
        }
        self.space.pmap.undo(&mut self.part);
        Some(Need::Nothing)
    }

    fn advice(&self) -> Advice {
        if self.flags.has(Flags::RANDOM) {
            Advice::Random
        } else if self.flags.has(Flags::SEQUENTIAL) {
            Advice::Sequential
        } else {
            Advice::Normal
        }
    }
}

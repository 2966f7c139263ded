//! Making a mapping.

use super::Pmap;
use crate::error::Error;
use crate::frames::Content;
use crate::policy::{Invalidation, MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::Part;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Maps the page in `frame` at `address`, and takes a reference to it. The caller
    /// has one too.
    ///
    /// `Ok(false)` if a page is mapped there already; nothing changes then. After an
    /// error nothing has changed either.
    ///
    /// # Panics
    /// If `address` is no user address.
    pub fn enter(&self, address: usize, frame: Frame, prot: Prot) -> Result<bool, Error> {
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.locking.pmap();
        let mut locked = self.tree.lock(page_at(address))?;
        let part = locked.parts().next();
        self.enter_part(part.expect("a page is a part"), frame, prot)
    }

    /// As [`Pmap::enter`], for the page that is locked as `part`.
    pub(crate) fn enter_part(
        &self,
        mut part: Part<'_, M>,
        frame: Frame,
        prot: Prot,
    ) -> Result<bool, Error> {
        let address = part.range().start;
        if let Some(leaf) = part.inside().leaf
            && self.entry(leaf, 0, address).load(Ordering::Relaxed) != 0
        {
            return Ok(false);
        }
        let leaf = self.prepare(&mut part)?;
        let page = self.vm.page(frame);
        // SAFETY: the slot's lock is held, and there is room.
        let pv = unsafe { part.inside().chunks.take(address) };
        let mut list = page.lock_pv();
        // SAFETY: the entry is fresh.
        unsafe { list.insert(pv) };
        page.retain();
        // Release: a walker that finds the page finds its content.
        self.entry(leaf, 0, address).store(
            frame.address() | prot.bits() | pte::PRESENT,
            Ordering::Release,
        );
        part.add_resident(1);
        self.count_resident(1);
        Ok(true)
    }

    /// Does all that can fail: gets room for a PV entry, and the leaf table.
    fn prepare(&self, part: &mut Part<'_, M>) -> Result<Frame, Error> {
        let address = part.range().start;
        let chunk = match part.inside().chunks.has_room() {
            true => None,
            false => Some(self.vm.allocate(Content::Any)?),
        };
        let leaf = match part.inside().leaf {
            Some(leaf) => leaf,
            None => self.grow(address).inspect_err(|_| {
                if let Some(chunk) = chunk {
                    self.vm.free(chunk, false);
                }
            })?,
        };
        part.inside().leaf = Some(leaf);
        if let Some(chunk) = chunk {
            let memory = self.vm.machine().direct_map(chunk);
            M::label(memory.as_ptr().cast(), PAGE_SIZE, "PV chunk");
            let owner = self.owner(part.slot());
            // SAFETY: the frame is fresh, and the slot's lock is held.
            unsafe { part.inside().chunks.add(chunk, memory, owner) };
        }
        Ok(leaf)
    }

    /// The page mapped at `address`, if any.
    pub fn lookup(&self, address: usize) -> Option<Frame> {
        let _pmap = self.locking.pmap();
        let place = self.tree.find(address);
        if place.level > 0 {
            return None;
        }
        let mut locked = self.tree.lock_small(place, page_at(address));
        let leaf = locked.parts().next()?.inside().leaf?;
        let entry = self.entry(leaf, 0, address).load(Ordering::Relaxed);
        (entry & pte::PRESENT != 0).then(|| pte::frame(entry))
    }
}

/// The page that `address` lies in.
fn page_at(address: usize) -> VaRange {
    VaRange::sized(address & !(PAGE_SIZE - 1), PAGE_SIZE)
}

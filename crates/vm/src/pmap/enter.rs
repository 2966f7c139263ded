//! Making a mapping.

use super::Pmap;
use crate::error::Error;
use crate::frames::Content;
use crate::policy::{Invalidation, Policies};
use crate::prot::Prot;
use machine::{Atomic, Frame, Ordering, Platform, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Maps the page in `frame` at `address`, and takes a reference to it. The caller
    /// has one too.
    ///
    /// `Ok(false)` if a page is mapped there already; nothing changes then. After an
    /// error nothing has changed either.
    pub fn enter(&self, address: usize, frame: Frame, prot: Prot) -> Result<bool, Error> {
        let _enter = self.vm.invalidation().enter();
        let mut inner = self.inner.lock();
        if let Some(table) = self.leaf(address)
            && self.entry(table, 0, address).load(Ordering::Relaxed) != 0
        {
            return Ok(false);
        }
        // All that can fail comes first.
        if !inner.chunks.has_room() {
            let chunk = self.vm.allocate(Content::Any)?;
            let memory = self.vm.machine().direct_map(chunk);
            // SAFETY: the frame is fresh, and the pmap's lock is held.
            unsafe { inner.chunks.add(chunk, memory, self.identity()) };
        }
        let table = self.grow(address).inspect_err(|_| {
            // SAFETY: the lock is held; an entry taken and given back at once.
            let unused = unsafe {
                let pv = inner.chunks.take(address);
                inner.chunks.give(pv)
            };
            if let Some(chunk) = unused {
                self.vm.free(chunk, false);
            }
        })?;
        let page = self.vm.page(frame);
        // SAFETY: the pmap's lock is held, and there is room.
        let pv = unsafe { inner.chunks.take(address) };
        let mut list = page.lock_pv();
        // SAFETY: the entry is fresh.
        unsafe { list.insert(pv) };
        page.retain();
        // Release: a walker that finds the page finds its content.
        self.entry(table, 0, address).store(
            frame.address() | prot.bits() | pte::PRESENT,
            Ordering::Release,
        );
        self.vm.page(table).entry_added();
        self.add_resident(1);
        Ok(true)
    }

    /// The page mapped at `address`, if any.
    pub fn lookup(&self, address: usize) -> Option<Frame> {
        let _inner = self.inner.lock();
        let table = self.leaf(address)?;
        let entry = self.entry(table, 0, address).load(Ordering::Relaxed);
        (entry & pte::PRESENT != 0).then(|| pte::frame(entry))
    }
}

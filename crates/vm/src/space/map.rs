//! Mapping memory.

use super::{Space, whole_pages};
use crate::error::Error;
use crate::policy::{MapLocking, Policies, Reservation};
use crate::prot::Prot;
use crate::tree::Rights;
use machine::{PAGE_SIZE, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Maps `bytes` (rounded up to pages) of zeroes somewhere, and returns where.
    ///
    /// Writable memory reserves swap space. O(slots) in the usual case, whatever else is
    /// mapped: 1 for 128 MiB that never were subdivided.
    pub fn map(&self, bytes: usize, prot: Prot) -> Result<usize, Error> {
        let bytes = match whole_pages(bytes) {
            None => return Err(Error::NoAddresses { bytes }),
            Some(0) => {
                let reason = "the length is zero";
                return Err(Error::Invalid { reason });
            }
            Some(bytes) => bytes,
        };
        let _write = self.pmap.locking.write();
        let rights = Rights::new(prot);
        self.charging(bytes, rights, || self.place(bytes, rights))
    }

    /// Maps zeroes at `range` in the place of whatever is there.
    pub fn map_fixed(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _write = self.pmap.locking.write();
        let rights = Rights::new(prot);
        self.charging(range.len(), rights, || self.replace(range, Some(rights)))
    }

    /// Reserves swap space for `bytes` mapped with `rights` if they take any, and
    /// gives it back if `map` fails.
    pub(super) fn charging<R>(
        &self,
        bytes: usize,
        rights: Rights,
        map: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let pages = (bytes / PAGE_SIZE) as u64;
        let charge = if rights.charged { pages } else { 0 };
        self.reserve(charge)?;
        map().inspect_err(|_| self.release(charge))
    }

    /// Puts a mapping of zeroes with these rights, or nothing, in the place of all that
    /// is in `range`. When it returns, no CPU can reach the pages that were there.
    pub(super) fn replace(&self, range: VaRange, rights: Option<Rights>) -> Result<(), Error> {
        let mut removal = self.pmap.lock_to_remove(range)?;
        let mut charged = 0;
        for mut part in removal.locked.parts() {
            part.make_room()?;
            charged += part.charged();
        }
        removal.pages();
        let parts = removal.locked.parts();
        parts.for_each(|mut part| part.set(rights));
        drop(removal);
        self.release(charged);
        Ok(())
    }

    /// Reserves swap space for `pages`.
    pub(super) fn reserve(&self, pages: u64) -> Result<(), Error> {
        if pages == 0 || self.vm.swap().reserve(pages) {
            Ok(())
        } else {
            Err(Error::OverCommit { pages })
        }
    }

    /// Gives back what was reserved for `pages`.
    pub(super) fn release(&self, pages: u64) {
        if pages > 0 {
            self.vm.swap().release(pages);
        }
    }
}

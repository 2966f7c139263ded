//! Dropping the content of memory (`madvise` with `MADV_DONTNEED`).

use super::Space;
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::tree::Flags;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Drops the pages of `range` (its end rounded up to pages): the next access finds
    /// zeroes. When it returns, no CPU can reach the old pages. The regions stay.
    ///
    /// If part of the range is not mapped, or locked in memory, nothing changes.
    pub fn discard(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.discard_pages(range))
    }

    fn discard_pages(&self, range: VaRange) -> Result<(), Error> {
        let _read = self.pmap.locking.read();
        self.refuse_hole(range)?;
        let mut removal = self.pmap.lock_to_remove(range)?;
        let mut is_locked = false;
        for part in removal.locked.parts() {
            part.covered()?;
            part.for_each(|mapped| is_locked |= mapped.flags.has(Flags::LOCKED));
        }
        if is_locked {
            let reason = "the memory is locked";
            return Err(Error::Invalid { reason });
        }
        removal.pages();
        Ok(())
    }
}

//! Dropping the content of memory (`madvise` with `MADV_DONTNEED` or `MADV_FREE`).

use super::Space;
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::tree::{Flags, Mapped};
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Drops the pages of `range` (its end rounded up to pages): the next access finds
    /// zeroes. When it returns, no CPU can reach the old pages. The regions stay.
    ///
    /// If part of the range is not mapped, or locked in memory, nothing changes.
    pub fn discard(&self, range: VaRange) -> Result<(), Error> {
        self.discard_if(range, |_| Ok(()))
    }

    /// As [`Space::discard`], of private anonymous memory only.
    pub(super) fn free(&self, range: VaRange) -> Result<(), Error> {
        self.discard_if(range, |mapped| match mapped.is_private_anonymous() {
            true => Ok(()),
            false => Err(Error::Invalid {
                reason: "only private anonymous memory can be freed",
            }),
        })
    }

    /// As [`Space::discard`], if `check` finds all of it so.
    fn discard_if(
        &self,
        range: VaRange,
        check: impl Fn(&Mapped<'_, M, P>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.discard_pages(range, &check))
    }

    fn discard_pages(
        &self,
        range: VaRange,
        check: impl Fn(&Mapped<'_, M, P>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _read = self.pmap.locking.read();
        self.refuse_hole(range)?;
        let mut removal = self.pmap.lock_to_remove(range)?;
        removal.locked.visit(|mapped| {
            if mapped.flags.has(Flags::LOCKED) {
                let reason = "the memory is locked";
                return Err(Error::Invalid { reason });
            }
            check(&mapped)
        })?;
        removal.pages();
        Ok(())
    }
}

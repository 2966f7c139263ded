//! Dropping the content of memory (`madvise` with `MADV_DONTNEED`), at once or when memory is
//! short (`MADV_FREE`).

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
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.discard_pages(range))
    }

    fn discard_pages(&self, range: VaRange) -> Result<(), Error> {
        let _read = self.pmap.locking.read();
        self.refuse_hole(range)?;
        let mut removal = self.pmap.lock_to_remove(range)?;
        removal.locked.visit(|mapped| refuse_locked(&mapped))?;
        removal.pages();
        Ok(())
    }

    /// Gives the pages of `range` up: each may go until it is written again, and an access finds
    /// what it had, or zeroes. Private anonymous memory only; otherwise as [`Space::discard`].
    pub(super) fn free(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _read = self.pmap.locking.read();
        self.refuse_hole(range)?;
        let _pmap = self.pmap.locking.pmap();
        let mut locked = self.pmap.tree.lock(range)?;
        locked.visit(|mapped| {
            refuse_locked(&mapped)?;
            match mapped.is_private_anonymous() {
                true => Ok(()),
                false => invalid("only private anonymous memory can be freed"),
            }
        })?;
        self.pmap.give_up(&mut locked);
        Ok(())
    }
}

fn refuse_locked<M: Platform, P: Policies<M>>(mapped: &Mapped<'_, M, P>) -> Result<(), Error> {
    match mapped.flags.has(Flags::LOCKED) {
        true => invalid("the memory is locked"),
        false => Ok(()),
    }
}

fn invalid(reason: &'static str) -> Result<(), Error> {
    Err(Error::Invalid { reason })
}

//! Dropping the content of memory (`madvise` with `MADV_DONTNEED`).

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Drops the pages of `range` (its end rounded up to pages): the next access finds
    /// zeroes. When it returns, no CPU can reach the old pages. The regions stay, so
    /// they are only read.
    ///
    /// If part of the range is not mapped, nothing changes.
    pub fn discard(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let map = self.map.read();
        map.regions.covers(range)?;
        self.pmap.remove(range);
        Ok(())
    }
}

//! Dropping the content of memory (`madvise` with `MADV_DONTNEED`).

use super::{Space, whole_pages};
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
        let end = whole_pages(range.end).unwrap_or(0);
        let range = VaRange { end, ..range };
        Self::check(range)?;
        let map = self.map.read();
        map.regions.covers(range)?;
        self.pmap.remove(range);
        Ok(())
    }
}

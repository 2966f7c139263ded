//! Changing rights.

use super::Space;
use super::region::Region;
use crate::error::Error;
use crate::policy::Policies;
use crate::prot::Prot;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Gives all of `range` (its end rounded up to pages) the rights `prot`. When it
    /// returns, no CPU can use a right that was taken away.
    ///
    /// Memory that becomes writable for the first time reserves swap space. If part of
    /// the range is not mapped, nothing changes.
    pub fn protect(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let mut map = self.map.write();
        map.regions.covers(range)?;
        let old = map.regions.overlapping(range);
        let charged: u64 = old.iter().map(|r| r.charged_in(range)).sum();
        let uncharged = range.pages() as u64 - charged;
        // A region is charged as a whole or not at all, so the result is uniform: what
        // was charged stays so, and then the rest is charged with it.
        let charge = prot.writes() || charged > 0;
        map.regions.make_room()?;
        self.reserve(if charge { uncharged } else { 0 })?;
        let region = Region {
            range,
            prot,
            charged: charge,
        };
        map.regions.replace(range, Some(region));
        self.pmap.protect(range, prot);
        Ok(())
    }
}

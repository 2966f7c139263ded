//! Unmapping memory.

use super::Space;
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::tree::ALL;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Unmaps whatever is mapped in `range` (its end rounded up to pages). When it
    /// returns, no CPU can reach the pages. Holes are no error, as POSIX says.
    pub fn unmap(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _write = self.pmap.locking.write();
        if !self.pmap.tree.is_hole(range) {
            self.replace(range, None)?;
            self.arenas.unmapped(range);
        }
        Ok(())
    }

    /// Unmaps all.
    pub(super) fn clear(&self) {
        let cleared = self.replace(ALL, None);
        debug_assert!(cleared.is_ok(), "whole slots need no memory");
    }
}

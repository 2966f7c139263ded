//! Unmapping memory.

use super::Space;
use super::arena::TABLE;
use crate::error::Error;
use crate::pmap::whole_lines;
use crate::policy::{MapLocking, Policies};
use crate::tree::ALL;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Unmaps whatever is mapped in `range` (its end rounded up to pages). When it
    /// returns, no CPU can reach the pages. Holes are no error, as POSIX says.
    pub fn unmap(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.unmap_pages(range))
    }

    fn unmap_pages(&self, range: VaRange) -> Result<(), Error> {
        let _write = self.pmap.locking.write();
        if !self.pmap.tree.is_hole(range) {
            self.give_back(range)?;
        }
        Ok(())
    }

    /// Unmaps `range`. Its addresses are used again first, and tables that are not needed go.
    pub(super) fn give_back(&self, range: VaRange) -> Result<(), Error> {
        let leaves_tables = self.replace(range, None)?;
        self.region_gone(range);
        self.arenas.unmapped(range);
        if leaves_tables {
            self.trim(range);
        }
        Ok(())
    }

    /// Frees tables that `range` does not need any more.
    pub(super) fn trim(&self, range: VaRange) {
        let whole = whole_lines(range);
        if whole.start < whole.end {
            self.pmap.trim(whole);
        }
        let before = VaRange {
            end: whole.start.min(range.end),
            ..range
        };
        let after = VaRange {
            start: whole.end.max(range.start),
            ..range
        };
        for part in [before, after] {
            for place in self.pmap.tree.places(part) {
                let is_spare = place.level == 0 && place.slot.is_empty();
                if is_spare && let Some(other) = self.arenas.vacated(place.range.start) {
                    self.pmap.trim(VaRange::sized(other, TABLE));
                }
            }
        }
    }

    /// Unmaps all.
    pub(super) fn clear(&self) {
        let cleared = self.replace(ALL, None);
        debug_assert!(cleared.is_ok(), "whole slots need no memory");
        self.region_gone(ALL);
    }
}

//! Memory that stays (`mlock`).

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use crate::tree::Flags;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Keeps the pages of `range` (its end rounded up to pages) in memory, and brings them:
    /// at once, or with `on_fault` as they are used.
    ///
    /// If part of the range is not mapped, nothing changes.
    pub fn lock(&self, range: VaRange, on_fault: bool) -> Result<(), Error> {
        let how = Flags::LOCKED.with_if(on_fault, Flags::ON_FAULT);
        self.reflag(range, Flags::LOCKED | Flags::ON_FAULT, how)?;
        if !on_fault {
            self.populate(Self::in_pages(range)?);
        }
        Ok(())
    }

    /// Lets the pages of `range` go if memory is short.
    pub fn unlock(&self, range: VaRange) -> Result<(), Error> {
        self.reflag(range, Flags::LOCKED | Flags::ON_FAULT, Flags::NONE)
    }
}

//! Memory that stays (`mlock`).

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use crate::tree::Flags;
use machine::{PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Keeps the pages of `range` (its end rounded up to pages) in memory, and brings them:
    /// at once, or with `on_fault` as they are used.
    ///
    /// If part of the range is not mapped, nothing changes.
    ///
    /// # Errors
    /// [`Error::NotMapped`] also for a page that can not be brought, since tasks may do nothing
    /// with it, or since it lies behind its object's end; all of the range is locked then,
    /// and what lies before that page is in memory.
    pub fn lock(&self, range: VaRange, on_fault: bool) -> Result<(), Error> {
        let how = Flags::LOCKED.with_if(on_fault, Flags::ON_FAULT);
        self.reflag(range, Flags::LOCKED | Flags::ON_FAULT, how)?;
        if on_fault {
            return Ok(());
        }
        self.bring_usable(Self::in_pages(range)?)
            .map_err(|error| match error {
                Error::Segv(PageFault { address, .. }) => Error::NotMapped { address },
                Error::Bus { .. } => Error::NotMapped {
                    address: range.start,
                },
                other => other,
            })
    }

    /// Lets the pages of `range` go if memory is short.
    pub fn unlock(&self, range: VaRange) -> Result<(), Error> {
        self.reflag(range, Flags::LOCKED | Flags::ON_FAULT, Flags::NONE)
    }
}

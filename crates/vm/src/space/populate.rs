//! Bringing pages before they are used.

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use machine::{Access, PAGE_SIZE, PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Brings the pages of a new mapping, writable ones for writing; what can not be had
    /// comes when it is used. For want of memory the rest does, too.
    pub(super) fn populate(&self, range: VaRange) {
        for page in pages(range) {
            if let Err(Error::OutOfMemory(_)) = self.bring_usable(page) {
                return;
            }
        }
    }

    /// Brings the pages of `range`, writable ones for writing, as far as the first that can
    /// not be had.
    pub(super) fn bring_usable(&self, range: VaRange) -> Result<(), Error> {
        pages(range).try_for_each(|page| match self.bring(page, Access::Write) {
            Err(Error::Segv(_)) => self.bring(page, Access::Read),
            brought => brought,
        })
    }

    /// Brings the pages of `range` as an access to each would.
    pub(super) fn bring(&self, range: VaRange, access: Access) -> Result<(), Error> {
        (range.start..range.end)
            .step_by(PAGE_SIZE)
            .try_for_each(|address| {
                self.fault(PageFault {
                    address,
                    access,
                    present: false,
                })
            })
    }
}

/// The pages of a range, one by one.
pub(super) fn pages(range: VaRange) -> impl Iterator<Item = VaRange> {
    let starts = (range.start..range.end).step_by(PAGE_SIZE);
    starts.map(|start| VaRange::sized(start, PAGE_SIZE))
}

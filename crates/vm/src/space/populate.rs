//! Bringing pages before they are used.

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use machine::{Access, PAGE_SIZE, PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Brings the pages of a new mapping, writable ones for writing; what can not be had
    /// comes when it is used.
    pub(super) fn populate(&self, range: VaRange) {
        let brought = self.bring(range, Access::Write);
        if matches!(brought, Err(Error::Segv(_))) {
            let _ = self.bring(range, Access::Read);
        }
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

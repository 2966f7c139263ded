//! The page fault.

use super::Space;
use crate::error::Error;
use crate::frames::Content;
use crate::policy::Policies;
use machine::{Access, PAGE_SIZE, PageFault, Platform};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Handles a fault of a task in this space: afterwards the access may be tried
    /// again, or it was not allowed ([`Error::Segv`]).
    ///
    /// The regions are locked for reading throughout, so an unmap waits for the faults
    /// in it, and faults do not wait for each other there.
    pub fn fault(&self, fault: PageFault) -> Result<(), Error> {
        let map = self.map.read();
        let segv = Error::Segv(fault);
        let region = map.regions.find(fault.address).ok_or(segv)?;
        let allowed = match fault.access {
            Access::Read => region.prot.reads(),
            Access::Write => region.prot.writes(),
        };
        if !allowed {
            return Err(segv);
        }
        let address = fault.address & !(PAGE_SIZE - 1);
        if fault.present {
            // The entry allows it by now: this CPU's translation is an old one.
            self.pmap.refresh(address);
            return Ok(());
        }
        let frame = self.vm.allocate_page(Content::Zeroed)?;
        let entered = self.pmap.enter(address, frame, region.prot);
        // The mapping has its own reference; if another task was faster, the frame goes.
        self.vm.release_page(frame);
        entered.map(|_| ())
    }
}

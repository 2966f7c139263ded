//! The page fault.

use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::frames::Content;
use crate::policy::{Invalidation, MapLocking, Policies};
use machine::{Access, Frame, PAGE_SIZE, PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Handles a fault of a task in this space: afterwards the access may be tried
    /// again, or it was not allowed ([`Error::Segv`]).
    ///
    /// The page's slot is locked while the mapping is made, so an unmap waits for the
    /// faults in it, and faults in other slots do not. The page is zeroed before.
    pub fn fault(&self, fault: PageFault) -> Result<(), Error> {
        let page = VaRange::sized(fault.address & !(PAGE_SIZE - 1), PAGE_SIZE);
        if page.start < LOWEST || page.end > HIGHEST {
            return Err(Error::Segv(fault));
        }
        let _read = self.pmap.locking.read();
        if self.pmap.tree.is_hole(page) {
            return Err(Error::Segv(fault));
        }
        if fault.present {
            return self.resolve(fault, page, None);
        }
        let frame = self.vm.allocate_page(Content::Zeroed);
        let resolved = self.resolve(fault, page, Some(frame));
        // The mapping has its own reference; if there is none, the frame goes.
        if let Ok(frame) = frame {
            self.vm.release_page(frame);
        }
        resolved
    }

    /// Maps the frame, if one was asked for and the access is allowed.
    fn resolve(
        &self,
        fault: PageFault,
        page: VaRange,
        frame: Option<Result<Frame, Error>>,
    ) -> Result<(), Error> {
        let segv = Error::Segv(fault);
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.pmap.locking.pmap();
        let mut locked = self.pmap.tree.lock(page)?;
        let part = locked.parts().next().ok_or(segv)?;
        let prot = part.rights().ok_or(segv)?.prot;
        let allowed = match fault.access {
            Access::Read => prot.reads(),
            Access::Write => prot.writes(),
        };
        if !allowed {
            return Err(segv);
        }
        match frame {
            Some(frame) => self.pmap.enter_part(part, frame?, prot).map(|_| ()),
            // The entry allows it by now: this CPU's translation is an old one.
            None => {
                self.pmap.refresh(page.start);
                Ok(())
            }
        }
    }
}

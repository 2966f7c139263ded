//! The page fault.
//!
//! What may take long (zeroing, copying in, waiting for a pager) is done without a lock: a
//! fault looks under the lock of the page's slot what it needs, lets go, gets it, and
//! looks again. A first touch of private memory needs a page of zeroes, which is brought
//! at once.

use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::frames::Content;
use crate::pmap::Entry;
use crate::policy::{Invalidation, MapLocking, Policies};
use crate::tree::{Flags, Kind, Part};
use crate::vm::Vm;
use machine::{Access, Frame, PAGE_SIZE, PageFault, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Handles a fault of a task in this space: afterwards the access may be tried
    /// again, or it was not allowed ([`Error::Segv`]).
    ///
    /// The page's slot is locked while the mapping is made, so an unmap waits for the
    /// faults in it, and faults in other slots do not.
    pub fn fault(&self, fault: PageFault) -> Result<(), Error> {
        let page = VaRange::sized(fault.address & !(PAGE_SIZE - 1), PAGE_SIZE);
        if page.start < LOWEST || page.end > HIGHEST {
            return Err(Error::Segv(fault));
        }
        let _read = self.pmap.locking.read();
        if self.pmap.tree.is_hole(page) {
            return Err(Error::Segv(fault));
        }
        let mut supply = Supply::new(&self.vm);
        if !fault.present {
            supply.try_zeroes();
        }
        while let Some(need) = self.resolve(fault, page, &mut supply)? {
            supply.get(need)?;
        }
        Ok(())
    }

    /// Maps the page, or says what that takes.
    fn resolve(
        &self,
        fault: PageFault,
        page: VaRange,
        supply: &mut Supply<'_, M, P>,
    ) -> Result<Option<Need>, Error> {
        let segv = Error::Segv(fault);
        let _enter = self.vm.invalidation().enter();
        let _pmap = self.pmap.locking.pmap();
        let mut locked = self.pmap.tree.lock(page)?;
        let mut part = locked.parts().next().ok_or(segv)?;
        let flags = part.first().ok_or(segv)?.flags;
        let writes = fault.access == Access::Write;
        let allowed = match fault.access {
            Access::Read => flags.prot().reads(),
            Access::Write => flags.prot().writes(),
        };
        if !allowed {
            return Err(segv);
        }
        match self.pmap.entry_at(&part) {
            Entry::Empty => self.fill(&mut part, flags, supply),
            // The entry allows it by now: this CPU's translation is an old one.
            Entry::Page { writable, .. } if writable || !writes => {
                self.pmap.refresh(page.start);
                Ok(None)
            }
            Entry::Page { frame, kind, .. } => {
                let ours = || kind == Kind::Private && self.vm.is_exclusive(frame);
                if flags.has(Flags::SHARED) || ours() {
                    self.pmap.permit(&mut part, flags.prot());
                    return Ok(None);
                }
                let Some(copy) = supply.take_frame() else {
                    return Ok(Some(Need::Room));
                };
                let replaced = self.pmap.replace(&mut part, copy, flags.prot());
                replaced.inspect_err(|_| self.vm.release_page(copy))?;
                Ok(None)
            }
            Entry::Swapped(_) => unreachable!("there is no swap space"),
        }
    }

    /// Maps a page of zeroes.
    fn fill(
        &self,
        part: &mut Part<'_, M, P>,
        flags: Flags,
        supply: &mut Supply<'_, M, P>,
    ) -> Result<Option<Need>, Error> {
        if !supply.has_zeroes()? {
            return Ok(Some(Need::Zeroes));
        }
        self.pmap.prepare(part)?;
        if let Some(frame) = supply.take_frame() {
            let prot = flags.prot();
            self.pmap
                .make(part, frame, Kind::Private, prot, prot.writes());
        }
        Ok(None)
    }
}

/// What a fault can not go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// A page of zeroes.
    Zeroes,
    /// A page to copy to.
    Room,
}

/// What a fault has brought, and takes back if it was not needed.
struct Supply<'a, M: Platform, P: Policies<M>> {
    vm: &'a Vm<M, P>,
    /// A page that nobody knows, and whether it is all zero.
    frame: Option<(Frame, bool)>,
    /// Why there are no zeroes.
    failed: Option<Error>,
}

impl<'a, M: Platform, P: Policies<M>> Supply<'a, M, P> {
    fn new(vm: &'a Vm<M, P>) -> Self {
        Supply {
            vm,
            frame: None,
            failed: None,
        }
    }

    /// Gets what is needed.
    fn get(&mut self, need: Need) -> Result<(), Error> {
        self.give_back();
        let content = match need {
            Need::Zeroes => Content::Zeroed,
            Need::Room => Content::Any,
        };
        let frame = self.vm.allocate_page(content)?;
        self.frame = Some((frame, need == Need::Zeroes));
        Ok(())
    }

    /// Gets a page of zeroes. Without memory it may still be that none is needed.
    fn try_zeroes(&mut self) {
        self.failed = self.get(Need::Zeroes).err();
    }

    /// Whether there is a page of zeroes; an error if it could not be had.
    fn has_zeroes(&self) -> Result<bool, Error> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(matches!(self.frame, Some((_, true)))),
        }
    }

    /// The page, which is the caller's now.
    fn take_frame(&mut self) -> Option<Frame> {
        self.frame.take().map(|(frame, _)| frame)
    }

    fn give_back(&mut self) {
        if let Some((frame, zeroed)) = self.frame.take() {
            self.vm.release_unused(frame, zeroed);
        }
    }
}

impl<M: Platform, P: Policies<M>> Drop for Supply<'_, M, P> {
    fn drop(&mut self) {
        self.give_back();
    }
}

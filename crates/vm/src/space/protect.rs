//! Changing rights.

use super::Space;
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::Rights;
use machine::{Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Gives all of `range` (its end rounded up to pages) the rights `prot`. When it
    /// returns, no CPU can use a right that was taken away.
    ///
    /// Memory that becomes writable for the first time reserves swap space. If part of
    /// the range is not mapped, nothing changes.
    pub fn protect(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _write = self.pmap.locking.write();
        self.refuse_hole(range)?;
        let _pmap = self.pmap.locking.pmap();
        let mut locked = self.pmap.tree.lock(range)?;
        let mut charged = 0;
        for mut part in locked.parts() {
            part.covered()?;
            part.make_room()?;
            charged += part.charged();
        }
        // What was charged stays so, and then the rest is charged with it, so that the
        // range becomes uniform.
        let rights = Rights {
            prot,
            charged: prot.writes() || charged > 0,
        };
        let uncharged = range.pages() as u64 - charged;
        self.reserve(if rights.charged { uncharged } else { 0 })?;
        self.pmap.protect_locked(&mut locked, prot);
        locked.parts().for_each(|mut part| part.set(Some(rights)));
        Ok(())
    }

    /// An error if `range` is known to be a hole.
    pub(super) fn refuse_hole(&self, range: VaRange) -> Result<(), Error> {
        if self.pmap.tree.is_hole(range) {
            let address = range.start;
            return Err(Error::NotMapped { address });
        }
        Ok(())
    }
}

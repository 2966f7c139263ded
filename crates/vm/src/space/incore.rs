//! Which pages are in memory (`mincore`).

use super::Space;
use crate::error::Error;
use crate::pmap::Entry;
use crate::policy::{MapLocking, Policies};
use alloc::vec::Vec;
use machine::{PAGE_SIZE, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// For each page of `range` (its end rounded up to pages) whether an access would find
    /// it in memory, as of an instant.
    pub fn incore(&self, range: VaRange) -> Result<Vec<bool>, Error> {
        let range = Self::in_pages(range)?;
        let mut incore = Vec::new();
        incore.try_reserve_exact(range.pages())?;
        let _read = self.pmap.locking.read();
        self.refuse_hole(range)?;
        let mut locked = self.pmap.tree.lock(range)?;
        for mut part in locked.parts() {
            part.covered()?;
            let range = part.range();
            for address in (range.start..range.end).step_by(PAGE_SIZE) {
                let page = part.cut(VaRange::sized(address, PAGE_SIZE));
                let of_object = page.first().and_then(|mapped| {
                    let attached = mapped.attachment?;
                    attached.object().resident(attached.index(address))
                });
                let mapped = matches!(self.pmap.entry_at(&page), Entry::Page { .. });
                incore.push(mapped || of_object.is_some());
            }
        }
        Ok(incore)
    }
}

//! Changing the size of what is mapped.

use super::Pmap;
use crate::error::Error;
use crate::object::Object;
use crate::policy::Policies;
use crate::tree::{Flags, Mapped};
use machine::{PAGE_SIZE, Platform, VaRange};

impl<M: Platform, P: Policies<M>> Object<M, P> {
    /// Makes the object `size` bytes large, as `ftruncate` does a file. When it returns, no CPU
    /// reaches a page behind its end any more, private copies of such pages included: an
    /// access is [`Error::Bus`].
    ///
    /// If there is no memory to list who maps the object ([`Error::OutOfMemory`]), private
    /// copies may be left; then it is to be called again. O(pages cut off + mappings of the
    /// object).
    pub fn set_size(&self, size: u64) -> Result<(), Error> {
        let shrinks = size < self.size();
        self.truncate(size, |hold| {
            self.vm().remove_all(hold);
        })?;
        if !shrinks {
            return Ok(());
        }
        let cut = size.div_ceil(PAGE_SIZE as u64);
        for (pmap, range, first) in self.mappers()? {
            let kept = cut.saturating_sub(first).min(range.pages() as u64) as usize;
            let gone = VaRange {
                start: range.start + kept * PAGE_SIZE,
                end: range.end,
            };
            let copies = |at: Mapped<'_, M, P>| {
                // Another mapping of the object may stand there by now.
                let ours = |to: &crate::object::Attached<M, P>| {
                    core::ptr::eq(to.object(), self) && to.index(at.range.start) >= cut
                };
                !at.flags.has(Flags::SHARED) && at.attachment.is_some_and(ours)
            };
            if gone.start < gone.end {
                let pmap: &Pmap<M, P> = &pmap;
                pmap.remove_where(gone, copies)?;
            }
        }
        Ok(())
    }
}

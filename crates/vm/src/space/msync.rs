//! Writing mapped pages to their stores (`msync`).

use super::Space;
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::push;
use crate::object::Attached;
use crate::system::{Op, System};
use crate::tree::Mapped;
use alloc::vec::Vec;
use core::ops::Range;
use machine::VaRange;

/// Pages of an object, and an attachment that keeps it alive.
pub(super) type Piece<S> = (Attached<S>, Range<u64>);

impl<S: System> Space<S> {
    /// Writes the dirty pages of the files that are mapped shared in `range` (its end rounded
    /// up to pages). All stores made before the call are in the store after it.
    ///
    /// # Errors
    /// [`Error::NotMapped`] if part of the range is not mapped (then nothing is written), or
    /// the first of the stores' errors; pages not written stay dirty.
    pub fn sync(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let mut pieces = Vec::new();
        {
            let _op = self.begin(Op::Look);
            self.pmap.tree.find(range.start).refuse_hole(range)?;
            let mut locked = self.pmap.tree.over(range).lock()?;
            locked
                .parts()
                .visit(|mapped| Self::add_piece(&mut pieces, &mapped))?;
        }
        let mut result = Ok(());
        for (attached, pages) in pieces {
            let clean = |hold: &_| self.vm.test_modified(hold);
            result = result.and(attached.object().write_back(pages, clean));
        }
        result
    }

    /// Gives up copies that this space has of objects in `range` (its end rounded up to pages) and
    /// that others might have changed (`MS_INVALIDATE`). All mappings of an object show the same
    /// pages, so there is nothing to give up.
    ///
    /// # Errors
    /// [`Error::Busy`] if part of the range is locked in memory; otherwise [`Error::NotMapped`] if
    /// part of it is not mapped.
    pub fn invalidate(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        let _op = self.begin(Op::Look);
        self.pmap.tree.find(range.start).refuse_hole(range)?;
        let mut covered = Ok(());
        for part in self.pmap.tree.over(range).lock()?.parts() {
            part.try_for_each(|mapped| {
                if mapped.flags.has(Flags::LOCKED) {
                    Err(Error::Busy {
                        address: mapped.range.start,
                    })
                } else {
                    Ok(())
                }
            })?;
            covered = covered.and(part.covered());
        }
        covered
    }

    /// Adds the pages of an object that are mapped shared here to `pieces`, if there are any.
    pub(super) fn add_piece(
        pieces: &mut Vec<Piece<S>>,
        mapped: &Mapped<'_, S>,
    ) -> Result<(), Error> {
        let shared = |_: &&Attached<S>| mapped.flags.has(Flags::SHARED);
        let Some(attached) = mapped.attachment.filter(shared) else {
            return Ok(());
        };
        let first = attached.index(mapped.range.start);
        let past = first + mapped.range.pages() as u64;
        match pieces.last_mut() {
            Some((last, before)) if last == attached && before.end == first => {
                before.end = past;
                Ok(())
            }
            _ => push(pieces, (attached.clone(), first..past)),
        }
    }
}

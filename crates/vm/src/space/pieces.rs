//! The parts of objects that are mapped shared in a range.

use super::Space;
use crate::error::Error;
use crate::heap::push;
use crate::object::Attached;
use crate::policy::Policies;
use crate::tree::{Flags, Mapped};
use alloc::vec::Vec;
use core::ops::Range;
use machine::Platform;

/// Pages of an object, and the attachment that keeps it.
pub(super) type Piece<M, P> = (Attached<M, P>, Range<u64>);

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Adds to `pieces` what of an object is mapped shared here, if anything is.
    pub(super) fn add_piece(
        pieces: &mut Vec<Piece<M, P>>,
        mapped: &Mapped<'_, M, P>,
    ) -> Result<(), Error> {
        let shared = |_: &&Attached<M, P>| mapped.flags.has(Flags::SHARED);
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

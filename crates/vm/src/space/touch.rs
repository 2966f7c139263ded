//! The first touch of a page of private memory, which most faults are, on a path of its own.
//!
//! It is the path of any fault ([`super::fault`]) without the steps that a first touch does not
//! need: other content than zeroes, tables to be made or left, superpages, calls of policies. If
//! the fault turns out to need one of them, this path has changed nothing, and the fault goes on
//! there with the frame.

use super::Space;
use super::supply::Got;
use crate::frames::Content;
use crate::prot::Prot;
use crate::system::System;
use crate::tree::{Likely, Locked, Mapped, Place};
use machine::{Access, PageFault, VaRange};

/// The result of an attempt at a first touch.
pub(super) enum Touch {
    /// A page of zeroes is mapped.
    Mapped,
    /// The fault needs something else.
    Other(Got),
}

impl<S: System> Space<S> {
    /// Maps a page of zeroes at `page`, in `place`, which is of level 0, if the fault needs only
    /// that.
    #[inline]
    pub(super) fn touch(&self, fault: PageFault, place: Place<'_, S>, page: VaRange) -> Touch {
        debug_assert_eq!(place.level, 0, "only small slots have pages");
        let may_be_one = !fault.present && self.vm.has_short_paths();
        if !may_be_one || place.slot.likely() != Likely::Zeroes {
            return Touch::Other(Got::Nothing);
        }
        let Ok(frame) = self.vm.allocate_for_page(Content::Zeroed) else {
            return Touch::Other(Got::Failed);
        };
        let mut locked = Locked::none(&self.pmap.tree);
        if locked.lock(self.pmap.tree.at(place, page)).is_ok()
            && let Some(mut part) = locked.parts().next()
            && let Some(mapped) = part.first()
            && let Some(prot) = self.plain_rights(&mapped, fault.access)
            && self.pmap.make_at_once(&mut part, frame, prot)
        {
            return Touch::Mapped;
        }
        Touch::Other(Got::Zeroes(frame))
    }

    /// The rights of private anonymous memory that is mapped page by page and allows the access.
    #[inline]
    fn plain_rights(&self, mapped: &Mapped<'_, S>, access: Access) -> Option<Prot> {
        let prot = mapped.flags.prot();
        let is_plain = mapped.attachment.is_none() && !self.vm.superpages().wanted(mapped.flags);
        (is_plain && prot.allows(access)).then_some(prot)
    }
}

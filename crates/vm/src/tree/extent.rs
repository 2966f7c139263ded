//! Mappings: their attributes, and runs of addresses with equal attributes.

use crate::flags::Flags;
use crate::object::Attached;
use crate::system::System;
use machine::VaRange;

/// The attributes of a mapping: everything except its addresses. 16 bytes.
pub(crate) struct Attributes<S: System> {
    pub(crate) flags: Flags,
    /// The mapped object and the offset in it; none if the memory is anonymous and private.
    pub(crate) attachment: Option<Attached<S>>,
}

impl<S: System> Attributes<S> {
    /// The attributes of private anonymous memory.
    pub(crate) const fn private(flags: Flags) -> Self {
        Attributes {
            flags,
            attachment: None,
        }
    }
}

impl<S: System> Clone for Attributes<S> {
    fn clone(&self) -> Self {
        Attributes {
            flags: self.flags,
            attachment: self.attachment.clone(),
        }
    }
}

impl<S: System> PartialEq for Attributes<S> {
    fn eq(&self, other: &Self) -> bool {
        self.flags == other.flags && self.attachment == other.attachment
    }
}

impl<S: System> Attributes<S> {
    /// Returns true if tasks see a mapping with these and one with `next` behind it as one mapping.
    pub(crate) fn go_on_in(&self, next: &Self) -> bool {
        let object = match (&self.attachment, &next.attachment) {
            (None, None) => true,
            (Some(this), Some(next)) => this.goes_on_in(next),
            _ => false,
        };
        self.flags == next.flags && object
    }
}

/// The mapping at `range`, as an operation that holds its slot sees it.
pub(crate) struct Mapped<'a, S: System> {
    pub(crate) range: VaRange,
    pub(crate) flags: Flags,
    pub(crate) attachment: Option<&'a Attached<S>>,
}

impl<S: System> Mapped<'_, S> {
    /// Returns true if its pages are its own, except those that a fork shares.
    pub(crate) fn is_private_anonymous(&self) -> bool {
        self.attachment.is_none() && !self.flags.has(Flags::SHARED)
    }

    /// Its attributes.
    pub(crate) fn attributes(&self) -> Attributes<S> {
        Attributes {
            flags: self.flags,
            attachment: self.attachment.cloned(),
        }
    }
}

/// A run of addresses with equal attributes. 32 bytes.
pub(crate) struct Extent<S: System> {
    pub(crate) range: VaRange,
    pub(crate) attributes: Attributes<S>,
}

impl<S: System> Clone for Extent<S> {
    fn clone(&self) -> Self {
        Extent {
            range: self.range,
            attributes: self.attributes.clone(),
        }
    }
}

impl<S: System> Extent<S> {
    /// The part of it in `range`, which it overlaps.
    pub(super) fn cut_to(&self, range: VaRange) -> Mapped<'_, S> {
        debug_assert!(
            self.range.start < range.end && range.start < self.range.end,
            "{range:?} has nothing of {:?}",
            self.range
        );
        Mapped {
            range: self.range.common(range),
            flags: self.attributes.flags,
            attachment: self.attributes.attachment.as_ref(),
        }
    }
}

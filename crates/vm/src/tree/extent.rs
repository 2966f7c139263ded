//! Mappings: attributes, and runs of addresses that have them.

use crate::flags::Flags;
use crate::object::Attached;
use crate::policy::Policies;
use machine::{Platform, VaRange};

/// The attributes of a mapping: all but its place. 16 bytes.
pub(crate) struct Attributes<M: Platform, P: Policies<M>> {
    pub(crate) flags: Flags,
    /// Which object is mapped, and where in it; none if the memory is anonymous and private.
    pub(crate) attachment: Option<Attached<M, P>>,
}

impl<M: Platform, P: Policies<M>> Attributes<M, P> {
    /// Of private anonymous memory.
    pub(crate) const fn private(flags: Flags) -> Self {
        Attributes {
            flags,
            attachment: None,
        }
    }
}

impl<M: Platform, P: Policies<M>> Clone for Attributes<M, P> {
    fn clone(&self) -> Self {
        Attributes {
            flags: self.flags,
            attachment: self.attachment.clone(),
        }
    }
}

impl<M: Platform, P: Policies<M>> PartialEq for Attributes<M, P> {
    fn eq(&self, other: &Self) -> bool {
        self.flags == other.flags && self.attachment == other.attachment
    }
}

impl<M: Platform, P: Policies<M>> Attributes<M, P> {
    /// Whether a mapping with these and one with `next` behind it are one mapping to tasks.
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
pub(crate) struct Mapped<'a, M: Platform, P: Policies<M>> {
    pub(crate) range: VaRange,
    pub(crate) flags: Flags,
    pub(crate) attachment: Option<&'a Attached<M, P>>,
}

impl<M: Platform, P: Policies<M>> Mapped<'_, M, P> {
    /// Whether its pages are its own, except those that a fork shares.
    pub(crate) fn is_private_anonymous(&self) -> bool {
        self.attachment.is_none() && !self.flags.has(Flags::SHARED)
    }

    /// Its attributes.
    pub(crate) fn attributes(&self) -> Attributes<M, P> {
        Attributes {
            flags: self.flags,
            attachment: self.attachment.cloned(),
        }
    }
}

/// A run of addresses with equal attributes. 32 bytes.
pub(crate) struct Extent<M: Platform, P: Policies<M>> {
    pub(crate) range: VaRange,
    pub(crate) attributes: Attributes<M, P>,
}

impl<M: Platform, P: Policies<M>> Clone for Extent<M, P> {
    fn clone(&self) -> Self {
        Extent {
            range: self.range,
            attributes: self.attributes.clone(),
        }
    }
}

impl<M: Platform, P: Policies<M>> Extent<M, P> {
    /// The part of it in `range`, which it overlaps.
    pub(super) fn cut_to(&self, range: VaRange) -> Mapped<'_, M, P> {
        Mapped {
            range: self.range.common(range),
            flags: self.attributes.flags,
            attachment: self.attributes.attachment.as_ref(),
        }
    }
}

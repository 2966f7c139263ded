//! What an entry of a leaf table says.
//!
//! | bits | meaning |
//! |---|---|
//! | present, not `OBJECT` | a page of private memory |
//! | present, `OBJECT` | a page of an object |
//! | not present, `SWAPPED` | the slot of the swap space, from bit 12 up, that has the page |
//! | 0 | nothing |
//!
//! A writable entry of private memory says that the page is only this mapping's; where
//! stores are private, an object's page is never writable.

use crate::prot::Prot;
use crate::tree::Kind;
use machine::{Frame, PAGE_SHIFT, pte};

/// A present entry names a page of an object.
const OBJECT: u64 = 1 << 9;
/// An entry that is not present names a slot of the swap space.
const SWAPPED: u64 = 1 << 10;

/// Some bit of these is set in each entry that says something.
pub(super) const USED: u64 = pte::PRESENT | SWAPPED;

/// An entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Nothing.
    Empty,
    /// A page is mapped.
    Page {
        /// The page's frame.
        frame: Frame,
        /// Whose it is.
        kind: Kind,
        /// Whether tasks may write it as it is.
        writable: bool,
    },
    /// The page is in this slot of the swap space.
    Swapped(u32),
}

impl Entry {
    pub(crate) const fn decode(bits: u64) -> Self {
        if bits & pte::PRESENT != 0 {
            Entry::Page {
                frame: pte::frame(bits),
                kind: kind(bits),
                writable: bits & pte::WRITABLE != 0,
            }
        } else if bits & SWAPPED != 0 {
            Entry::Swapped((bits >> PAGE_SHIFT) as u32)
        } else {
            Entry::Empty
        }
    }

    /// Whether the page in `frame` is mapped.
    pub(crate) fn maps(self, frame: Frame) -> bool {
        matches!(self, Entry::Page { frame: mapped, .. } if mapped == frame)
    }
}

/// What an entry that says something counts as.
pub(super) const fn kind(bits: u64) -> Kind {
    if bits & pte::PRESENT == 0 {
        Kind::Swapped
    } else if bits & OBJECT != 0 {
        Kind::Object
    } else {
        Kind::Private
    }
}

/// The entry of a page that is mapped with these rights, if its walker may write it.
#[inline]
pub(super) const fn page(frame: Frame, kind: Kind, prot: Prot, writable: bool) -> u64 {
    let object = match kind {
        Kind::Object => OBJECT,
        _ => 0,
    };
    frame.address() | object | rights(prot, writable) | pte::PRESENT
}

/// The rights that an entry gives.
#[inline]
pub(super) const fn rights(prot: Prot, writable: bool) -> u64 {
    if writable {
        prot.bits()
    } else {
        prot.bits() & !pte::WRITABLE
    }
}

/// The entry of a page that is in the swap space.
pub(super) const fn swapped(slot: u32) -> u64 {
    (slot as u64) << PAGE_SHIFT | SWAPPED
}

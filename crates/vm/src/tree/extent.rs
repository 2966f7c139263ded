//! What is mapped in a slot, in a byte.

use crate::prot::Prot;

/// What a mapping has beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    /// What tasks may do.
    pub(crate) prot: Prot,
    /// Whether swap space is reserved for its pages.
    pub(crate) charged: bool,
}

impl Rights {
    /// The rights of a new mapping: writable memory is charged.
    pub(crate) fn new(prot: Prot) -> Self {
        let charged = prot.writes();
        Rights { prot, charged }
    }
}

/// What is mapped in a slot that is not subdivided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Nothing.
    Empty,
    /// All of it, with equal rights.
    Whole(Rights),
    /// Some of it, or with several rights: the slot's regions tell. Level 0 only.
    Parts,
}

const PARTS: u8 = 1 << 6;
const WHOLE: u8 = 1 << 7;
const CHARGED: u8 = 1 << 5;

impl Extent {
    pub(super) const fn to_byte(self) -> u8 {
        match self {
            Extent::Empty => 0,
            Extent::Parts => PARTS,
            Extent::Whole(Rights { prot, charged }) => {
                WHOLE | prot.to_byte() | if charged { CHARGED } else { 0 }
            }
        }
    }

    pub(super) const fn from_byte(byte: u8) -> Self {
        if byte & WHOLE != 0 {
            Extent::Whole(Rights {
                prot: Prot::from_byte(byte & !(WHOLE | CHARGED)),
                charged: byte & CHARGED != 0,
            })
        } else if byte == PARTS {
            Extent::Parts
        } else {
            Extent::Empty
        }
    }
}

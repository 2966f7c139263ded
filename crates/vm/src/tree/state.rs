//! What is mapped in a slot, in a byte.

/// How much of a slot that has no node is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nothing.
    Empty = 0,
    /// All of it, with the slot's attributes.
    Whole = 1,
    /// Some of it, or with several attributes: the slot's extents tell. Level 0 only.
    Parts = 2,
}

impl State {
    pub(super) const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => State::Whole,
            2 => State::Parts,
            _ => State::Empty,
        }
    }
}

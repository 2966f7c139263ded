//! The state of a slot in a byte: how much of it is mapped, and how.

/// The part of a slot that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nothing.
    Empty = 0,
    /// All of it, with the slot's attributes.
    Whole = 1,
    /// Some of it, or all with several attributes: the slot's extents have the mappings. Level 0
    /// only.
    Parts = 2,
    /// The slot has a node, or is getting it; the node has the mappings.
    Divided = 3,
}

impl State {
    pub(super) const MASK: u8 = 0b0011;

    pub(super) const fn from_byte(byte: u8) -> Self {
        match byte & Self::MASK {
            1 => State::Whole,
            2 => State::Parts,
            3 => State::Divided,
            _ => State::Empty,
        }
    }
}

/// What a first touch in a slot will probably find, judged without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likely {
    /// Nothing: it needs a page of zeroes.
    Zeroes,
    /// A page of an object.
    Object,
    /// A page in the swap space, or a place in a run that is reserved.
    Other,
}

/// Something in the slot is, or lately was, attached to an object: a hint, for [`Likely`].
pub(super) const ATTACHED: u8 = 1 << 4;

/// The slot's extents have, or had, room: there is memory to be freed. Never cleared.
pub(super) const ROOM: u8 = 1 << 5;

/// How the pages of a slot of level 0 are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Size {
    /// One by one, at any frames.
    Pages = 0,
    /// One by one, each at its place of one block of frames. The slot is [`State::Whole`],
    /// and has a page.
    Run = 1 << 2,
    /// All by one entry.
    Superpage = 2 << 2,
    /// One by one, in a table that other spaces may share.
    Shared = 3 << 2,
}

impl Size {
    pub(super) const MASK: u8 = 0b1100;

    /// Returns true if this may change to `next`: only a run becomes a superpage, only pages get
    /// shared, and a shared table never becomes a run.
    pub(super) const fn may_become(self, next: Self) -> bool {
        match next {
            Size::Pages => true,
            Size::Run => !matches!(self, Size::Shared),
            Size::Superpage => matches!(self, Size::Run),
            Size::Shared => matches!(self, Size::Pages),
        }
    }

    pub(super) const fn from_byte(byte: u8) -> Self {
        match byte & Self::MASK {
            0b0100 => Size::Run,
            0b1000 => Size::Superpage,
            0b1100 => Size::Shared,
            _ => Size::Pages,
        }
    }
}

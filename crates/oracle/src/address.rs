//! Addresses in sequences.
//!
//! Every process has a window of addresses at a fixed place, a heap, and mappings that the system
//! placed. Since systems choose different addresses, a sequence refers to the latter by handles.

use std::fmt;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The window's first address: free in a Linux process, and aligned to 2 MiB.
pub const WINDOW: u64 = 1 << 45;
/// Pages of the window: four times 2 MiB.
pub const WINDOW_PAGES: u64 = 4 * 512;
/// Pages that the heap may have.
pub const HEAP_PAGES: u64 = 64;
/// The first address that no task of x86-64 Linux may map.
pub const USER_END: u64 = (1 << 47) - PAGE;

/// The name of a mapping whose address the system chose: a number that the sequence gives it.
pub type Handle = u16;

/// The origin of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The window's start.
    Window,
    /// The start of a mapping that the system placed.
    Handle(Handle),
    /// The heap's start.
    Heap,
    /// Zero, for absurd addresses.
    Absolute,
}

/// An address: an offset from a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The origin.
    pub place: Origin,
    /// Bytes.
    pub offset: u64,
}

/// A number of bytes from an address on; it need not be whole pages, or mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub start: Address,
    /// The length in bytes.
    pub bytes: u64,
}

impl Address {
    /// The start of the window's page `page`.
    pub fn window(page: u64) -> Self {
        Address {
            place: Origin::Window,
            offset: page * PAGE,
        }
    }

    /// The address `bytes` further on; the offset wraps around.
    pub fn plus(self, bytes: u64) -> Self {
        Address {
            offset: self.offset.wrapping_add(bytes),
            ..self
        }
    }
}

impl Range {
    /// `pages` pages from `start` on.
    pub fn pages(start: Address, pages: u64) -> Self {
        Range {
            start,
            bytes: pages * PAGE,
        }
    }
}

/// `w512` is the window's page 512, `w512+8` a byte in it, `h3:2` the third page of handle 3's
/// mapping, `b0` the heap's first page.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = self.offset / PAGE;
        match self.place {
            Origin::Window => write!(f, "w{page}")?,
            Origin::Handle(handle) => write!(f, "h{handle}:{page}")?,
            Origin::Heap => write!(f, "b{page}")?,
            Origin::Absolute => return write!(f, "{:#x}", self.offset),
        }
        match self.offset % PAGE {
            0 => Ok(()),
            byte => write!(f, "+{byte}"),
        }
    }
}

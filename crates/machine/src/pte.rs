//! x86-64 page-table entries: the bits that the hardware reads and sets.
//!
//! Bits 9–11 and 52–58 are the kernel's; `vm` defines their meaning.

use crate::{Frame, PAGE_SHIFT};

/// Levels of a tree; the root is level 3, leaf tables are level 0.
pub const LEVELS: u32 = 4;
/// Entries in a table.
pub const ENTRIES: usize = 512;
/// The first address that no user mapping may reach.
pub const USER_END: usize = 1 << 47;

/// The entries of a root table below [`USER_END`]; those from here on are the kernel's.
pub const USER_ENTRIES: usize = USER_END / span(LEVELS - 1);

/// The entry translates (or leads to a table).
pub const PRESENT: u64 = 1 << 0;
/// Writes are allowed.
pub const WRITABLE: u64 = 1 << 1;
/// Tasks may use it.
pub const USER: u64 = 1 << 2;
/// The walker has used the entry.
pub const ACCESSED: u64 = 1 << 5;
/// The walker has allowed a write.
pub const DIRTY: u64 = 1 << 6;
/// At level 1 or 2: the entry maps 2 MiB or 1 GiB.
pub const HUGE: u64 = 1 << 7;
/// Instruction fetches are refused.
pub const NO_EXECUTE: u64 = 1 << 63;
/// The physical address.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The frame an entry names.
#[inline]
pub const fn frame(entry: u64) -> Frame {
    Frame::containing(entry & ADDRESS)
}

/// The index of `address` in its table at `level`.
#[inline]
pub const fn index(address: usize, level: u32) -> usize {
    (address >> (PAGE_SHIFT + 9 * level)) & (ENTRIES - 1)
}

/// Bytes that one entry at `level` covers.
#[inline]
pub const fn span(level: u32) -> usize {
    1 << (PAGE_SHIFT + 9 * level)
}

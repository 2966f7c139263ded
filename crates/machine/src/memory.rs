//! Physical memory.

use crate::{Atomic, Atomics, Ordering};
use core::ptr::NonNull;

/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page and in a frame.
pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
/// 64-bit words in a frame.
pub const WORDS_PER_FRAME: usize = PAGE_SIZE / 8;

/// The number of a physical page frame: its physical address / [`PAGE_SIZE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(pub u32);

impl Frame {
    /// The physical address of the frame's first byte.
    #[inline]
    pub const fn address(self) -> u64 {
        (self.0 as u64) << PAGE_SHIFT
    }

    /// The frame that holds a physical address.
    #[inline]
    pub const fn containing(address: u64) -> Frame {
        Frame((address >> PAGE_SHIFT) as u32)
    }

    /// The frame's number, to index arrays with.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Physical memory: frames `0 .. frame_count()`, all of them RAM.
///
/// # Safety
/// [`Memory::direct_map`] must point to [`PAGE_SIZE`] bytes, page-aligned,
/// disjoint for different frames, valid while the machine lives; `word` must be
/// the `index`-th word of that memory, or, on a machine whose atomics are no
/// plain words, behave as if it were among accesses through `word`.
pub unsafe trait Memory: Atomics {
    /// How many frames there are.
    fn frame_count(&self) -> usize;

    /// Where the kernel sees the frame's bytes.
    fn direct_map(&self, frame: Frame) -> NonNull<u8>;

    /// The frame's `index`-th 64-bit word: a page-table entry, or task data.
    fn word(&self, frame: Frame, index: usize) -> &Self::AtomicU64;

    /// The first word of `frame` from `first` on, before `end`, that has a bit of `mask`
    /// set: its index and its value. Relaxed loads. What walks over empty page tables.
    fn find_word(&self, frame: Frame, first: usize, end: usize, mask: u64) -> Option<(usize, u64)> {
        (first..end).find_map(|index| {
            let value = self.word(frame, index).load(Ordering::Relaxed);
            (value & mask != 0).then_some((index, value))
        })
    }

    /// Fills the frame with zeroes. The caller owns it.
    fn zero(&self, frame: Frame);

    /// Copies `from` to `to`. The caller owns `to` and nobody writes `from`.
    fn copy(&self, from: Frame, to: Frame);

    /// Tells the machine that `frame` has an owner from now on. One that checks its user
    /// panics if it has one already.
    #[inline(always)]
    fn allocated(&self, frame: Frame) {
        let _ = frame;
    }

    /// Tells the machine that `frame` is free from now on. One that checks its user
    /// panics if it was free, or when a CPU later uses a translation to it that is older.
    #[inline(always)]
    fn freed(&self, frame: Frame) {
        let _ = frame;
    }
}

//! Physical memory.

use crate::{Atomic, Atomics, Ordering};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::AtomicBool;

/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page and in a frame.
pub const PAGE_SIZE: usize = 1 << PAGE_SHIFT;
/// Bytes in a word.
const WORD: usize = size_of::<u64>();
/// 64-bit words in a frame.
pub const WORDS_PER_FRAME: usize = PAGE_SIZE / WORD;

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

/// Physical memory.
///
/// # Frames are touched by their owners
/// A [`Frame`] is a number, which anybody can make. The functions that reach a frame's content are
/// therefore `unsafe`, with one contract: the frame is of this machine, and its content is the
/// caller's to touch. It is if the caller has the frame from the allocator of this machine's memory
/// and has not given it back; or if the frame holds a page, and the caller has a reference to that:
/// its content is data, which nobody follows. Only the kernel's own code for them touches page
/// tables and its other frames.
///
/// # Safety
/// For each frame in [`Memory::usable`], [`Memory::direct_map`] must point to [`Memory::ROOM`]
/// bytes that are page-aligned, disjoint for different frames, valid while the machine lives, and
/// touched only by the frame's owner; `word` must be the `index`-th word of that memory or, on a
/// machine whose atomics are not plain words, behave as if it were among accesses through `word`.
pub unsafe trait Memory: Atomics {
    /// Bytes at [`Memory::direct_map`]. More than [`PAGE_SIZE`] only on a machine whose cells are
    /// larger than the words they model.
    const ROOM: usize = PAGE_SIZE;

    /// One above the highest number of a usable frame; at most `u32::MAX`. Tables indexed by frame
    /// have as many entries.
    fn frame_end(&self) -> usize;

    /// Calls `each` with the frames that the machine hands over, range by range: RAM that is not
    /// absent and belongs neither to the firmware nor to the kernel. The ranges ascend, lie apart,
    /// and are the same at each call. The VM touches no other frame.
    fn usable(&self, each: &mut dyn FnMut(Range<u32>));

    /// True while an owner has the frames of [`Memory::usable`]: a VM, or a run of the
    /// [`conformance`](crate::conformance) suite. It sets the mark before it touches one, refuses a
    /// machine that has it set, and clears it when no CPU uses the frames any more. The same for
    /// all handles of a machine; false at first.
    fn owned(&self) -> &AtomicBool;

    /// The address at which the kernel sees the frame's bytes.
    fn direct_map(&self, frame: Frame) -> NonNull<u8>;

    /// The frame's `index`-th 64-bit word: a page-table entry, or task data.
    ///
    /// # Panics
    /// If the machine has no such frame, or a frame no such word.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn word(&self, frame: Frame, index: usize) -> &Self::AtomicU64;

    /// The first word of `frame` in `first..end` that has a bit of `mask` set: its index and its
    /// value. Relaxed loads. It is how a walk skips empty entries of page tables.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        (first..end).find_map(|index| {
            // SAFETY: so says the caller.
            let value = unsafe { self.word(frame, index) }.load(Ordering::Relaxed);
            (value & mask != 0).then_some((index, value))
        })
    }

    /// Fills `words` with those of `frame` from the `first` on: relaxed loads of whole words, which
    /// others may write meanwhile.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn read_words(&self, frame: Frame, first: usize, words: &mut [[u8; WORD]]) {
        for (index, word) in (first..).zip(words) {
            // SAFETY: so says the caller.
            let from = unsafe { self.word(frame, index) };
            *word = from.load(Ordering::Relaxed).to_ne_bytes();
        }
    }

    /// Writes `words` to those of `frame` from the `first` on: relaxed stores of whole words, which
    /// others may use meanwhile. A store of what is there already may be left out.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn write_words(&self, frame: Frame, first: usize, words: &[[u8; WORD]]) {
        for (index, &word) in (first..).zip(words) {
            let word = u64::from_ne_bytes(word);
            // SAFETY: so says the caller.
            unsafe { self.word(frame, index) }.store(word, Ordering::Relaxed);
        }
    }

    /// Fills `bytes` with those of `frame` from byte `at` on, by [`Memory::read_words`].
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn read_bytes(&self, frame: Frame, at: usize, bytes: &mut [u8]) {
        let (head, rest) = bytes.split_at_mut(before_word(at, bytes.len()));
        let (words, tail) = rest.as_chunks_mut();
        let first = at.div_ceil(WORD);
        let part = |at: usize, bytes: &mut [u8]| {
            let mut word = [[0; WORD]];
            // SAFETY: so says the caller.
            unsafe { self.read_words(frame, at / WORD, &mut word) };
            bytes.copy_from_slice(&word[0][at % WORD..][..bytes.len()]);
        };
        if !head.is_empty() {
            part(at, head);
        }
        // SAFETY: so says the caller.
        unsafe { self.read_words(frame, first, words) };
        if !tail.is_empty() {
            part((first + words.len()) * WORD, tail);
        }
    }

    /// Writes `bytes` to those of `frame` from byte `at` on, by [`Memory::write_words`]. Other
    /// bytes of the same words, which others may write meanwhile, stay as these write them.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn write_bytes(&self, frame: Frame, at: usize, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(before_word(at, bytes.len()));
        let (words, tail) = rest.as_chunks();
        let first = at.div_ceil(WORD);
        let part = |at: usize, bytes: &[u8]| {
            // Relaxed, as the stores of whole words.
            let order = Ordering::Relaxed;
            // SAFETY: so says the caller.
            let word = unsafe { self.word(frame, at / WORD) };
            let mut old = word.load(order);
            loop {
                let mut new = old.to_ne_bytes();
                new[at % WORD..][..bytes.len()].copy_from_slice(bytes);
                let new = u64::from_ne_bytes(new);
                match word.compare_exchange_weak(old, new, order, order) {
                    Ok(_) => return,
                    Err(now) => old = now,
                }
            }
        };
        if !head.is_empty() {
            part(at, head);
        }
        // SAFETY: so says the caller.
        unsafe { self.write_words(frame, first, words) };
        if !tail.is_empty() {
            part((first + words.len()) * WORD, tail);
        }
    }

    /// Fills the frame with zeroes.
    ///
    /// # Safety
    /// The frame's content is the caller's to touch, as [`Memory`] says.
    unsafe fn zero(&self, frame: Frame);

    /// Copies `from` to `to`. Words that others write meanwhile are copied as they were or are.
    ///
    /// # Safety
    /// The content of both is the caller's to touch, as [`Memory`] says.
    unsafe fn copy(&self, from: Frame, to: Frame);

    /// Tells the machine that `frame` has an owner from now on. A machine that checks this panics
    /// if the frame already has one.
    #[inline(always)]
    fn allocated(&self, frame: Frame) {
        let _ = frame;
    }

    /// Tells the machine that `frame` is free from now on. A machine that checks this panics if the
    /// frame was free, or when a CPU later uses an older translation to it.
    #[inline(always)]
    fn freed(&self, frame: Frame) {
        let _ = frame;
    }
}

/// The number of bytes, of `bytes` from `at` on, that lie before the first word that begins among
/// them.
fn before_word(at: usize, bytes: usize) -> usize {
    (at.next_multiple_of(WORD) - at).min(bytes)
}

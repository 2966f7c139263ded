//! Access to bytes of frames that tasks may use at the same time: each access is one of a whole
//! word.

use machine::{Atomic, AtomicInt, Frame, Memory, Ordering, PAGE_SIZE};

const WORD: usize = size_of::<u64>();

/// Fills the frame with zeroes from byte `from` on.
///
/// # Safety
/// The frame's content is the caller's to touch, as [`Memory`] says.
pub(super) unsafe fn zero_from<M: Memory>(machine: &M, frame: Frame, from: usize) {
    let mut at = from;
    if !at.is_multiple_of(WORD) {
        // The lower bytes of a little-endian word stay.
        let stays = (1u64 << (at % WORD * 8)) - 1;
        // SAFETY: so says the caller.
        let word = unsafe { machine.word(frame, at / WORD) };
        word.fetch_and(stays, Ordering::Relaxed);
        at = at.next_multiple_of(WORD);
    }
    for index in at / WORD..PAGE_SIZE / WORD {
        // SAFETY: so says the caller.
        unsafe { machine.word(frame, index) }.store(0, Ordering::Relaxed);
    }
}

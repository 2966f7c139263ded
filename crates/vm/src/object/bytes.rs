//! Bytes of frames that tasks may use meanwhile: each access is one of a whole word.

use machine::{Atomic, AtomicInt, Frame, Memory, Ordering, PAGE_SIZE};

const WORD: usize = size_of::<u64>();

/// Fills the frame with zeroes from byte `from` on.
pub(super) fn zero_from<M: Memory>(machine: &M, frame: Frame, from: usize) {
    let mut at = from;
    if !at.is_multiple_of(WORD) {
        // The lower bytes of a little-endian word stay.
        let stays = (1u64 << (at % WORD * 8)) - 1;
        let word = machine.word(frame, at / WORD);
        word.fetch_and(stays, Ordering::Relaxed);
        at = at.next_multiple_of(WORD);
    }
    for index in at / WORD..PAGE_SIZE / WORD {
        machine.word(frame, index).store(0, Ordering::Relaxed);
    }
}

/// Copies the frame's bytes from `offset` on to `to`.
pub(crate) fn copy_out<M: Memory>(machine: &M, frame: Frame, offset: usize, to: &mut [u8]) {
    for_each_word(offset, to.len(), |index, from, start, count| {
        let word = machine.word(frame, index).load(Ordering::Relaxed);
        to[start..start + count].copy_from_slice(&word.to_le_bytes()[from..from + count]);
    });
}

/// Copies `from` to the frame's bytes from `offset` on. Neighbouring bytes that tasks
/// write meanwhile stay as these write them.
pub(super) fn copy_in<M: Memory>(machine: &M, frame: Frame, offset: usize, from: &[u8]) {
    for_each_word(offset, from.len(), |index, to, start, count| {
        let word = machine.word(frame, index);
        let mut bytes = [0; WORD];
        bytes[to..to + count].copy_from_slice(&from[start..start + count]);
        let new = u64::from_le_bytes(bytes);
        if count == WORD {
            word.store(new, Ordering::Relaxed);
            return;
        }
        let mask = (u64::MAX >> ((WORD - count) * 8)) << (to * 8);
        let mut old = word.load(Ordering::Relaxed);
        while let Err(now) =
            word.compare_exchange_weak(old, old & !mask | new, Ordering::Relaxed, Ordering::Relaxed)
        {
            old = now;
        }
    });
}

/// Calls `visit` with each word that `bytes` bytes from `offset` on reach into: its index,
/// the first byte of it, where that is in the whole, and how many follow.
fn for_each_word(offset: usize, bytes: usize, mut visit: impl FnMut(usize, usize, usize, usize)) {
    let mut done = 0;
    while done < bytes {
        let at = offset + done;
        let first = at % WORD;
        let count = (WORD - first).min(bytes - done);
        visit(at / WORD, first, done, count);
        done += count;
    }
}

//! `clone` with its arguments in memory.

use super::{Answer, Arguments, Errno, process};
use crate::process::Thread;
use alloc::vec;

/// Bytes of the first version of `struct clone_args`.
const FIRST: usize = 64;
/// Bytes of the version that is supported here.
const KNOWN: usize = 88;
/// The most bytes that are read.
const MOST: usize = 4096;

pub fn clone3(thread: &mut Thread, [at, bytes, ..]: Arguments) -> Answer {
    match bytes {
        ..FIRST => return Err(Errno::INVAL),
        FIRST..=MOST => {}
        _ => return Err(Errno::TOOBIG),
    }
    let mut all = vec![0; bytes.max(KNOWN)];
    thread.read_bytes(at, &mut all[..bytes])?;
    if all[KNOWN..].iter().any(|&byte| byte != 0) {
        return Err(Errno::TOOBIG);
    }
    let (words, _) = all.as_chunks::<8>();
    let word = |index: usize| usize::from_le_bytes(words[index]);
    let [
        flags,
        handle,
        child_tid,
        parent_tid,
        signal,
        stack,
        size,
        tls,
    ] = core::array::from_fn(word);
    // Not supported: numbers that the caller chooses, control groups, and flags beyond 32 bits.
    let others = [word(8), word(9), word(10), flags >> 32];
    let is_stack = (stack == 0) == (size == 0);
    if others != [0; _] || !is_stack || signal > 64 || flags & 0xff != 0 {
        return Err(Errno::INVAL);
    }
    let stack = stack.checked_add(size).ok_or(Errno::INVAL)?;
    process::clone_with(
        thread,
        [flags | signal, stack, parent_tid, child_tid, tls, handle],
    )
}

//! Who called: the addresses of the functions on a CPU's stack.

/// How many callers are kept.
const DEPTH: usize = 32;

/// The return addresses from here up, the nearest first.
pub(crate) fn here() -> Vec<usize> {
    let mut frames = Vec::with_capacity(DEPTH);
    backtrace::trace(|frame| {
        frames.push(frame.ip() as usize);
        frames.len() < DEPTH
    });
    frames
}

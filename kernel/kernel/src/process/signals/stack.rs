//! The stack that handlers run on instead of the thread's own (`sigaltstack`).

use crate::errno::Errno;
use linux_raw_sys::general::{SS_DISABLE, SS_ONSTACK};

/// A stack for handlers; with a length of 0 there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalStack {
    /// The address of its lowest byte.
    pub start: usize,
    /// Its length in bytes.
    pub bytes: usize,
}

/// The least length of a stack.
const LEAST: usize = 2048;

impl SignalStack {
    /// The stack that the words of `stack_t` describe: address, flags, length.
    pub fn new([start, flags, bytes]: [usize; 3]) -> Result<Self, Errno> {
        match flags as u32 {
            SS_DISABLE => Ok(Self::default()),
            0 | SS_ONSTACK if bytes < LEAST => Err(Errno::NOMEM),
            0 | SS_ONSTACK => Ok(SignalStack { start, bytes }),
            _ => Err(Errno::INVAL),
        }
    }

    /// The words of `stack_t` for a thread whose stack pointer is at `pointer`.
    pub fn words(self, pointer: usize) -> [usize; 3] {
        let flags = match self.bytes {
            0 => SS_DISABLE,
            _ if self.has(pointer) => SS_ONSTACK,
            _ => 0,
        };
        [self.start, flags as usize, self.bytes]
    }

    /// Returns true if a stack pointer is in this stack.
    pub fn has(self, pointer: usize) -> bool {
        pointer > self.start && pointer - self.start <= self.bytes
    }

    /// The first stack pointer on it, for a thread whose stack pointer is at `pointer`; `None` if
    /// there is no such stack, or the thread is on it already.
    pub fn top(self, pointer: usize) -> Option<usize> {
        let is_usable = self.bytes > 0 && !self.has(pointer);
        is_usable.then(|| self.start.wrapping_add(self.bytes))
    }
}

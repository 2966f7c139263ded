//! Tasks, whatever they run on: where they are placed, how they start together, and the
//! memory that they share with the process that measures them.

pub mod places;
mod shared;
pub mod threads;

pub use places::{Affinity, Mask, born_at};
pub use shared::{Area, Slot, spend};

use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;

/// Part of the name of the frame below which a task's own stack begins.
pub const BEGIN: &str = "begin_task";

/// Calls `work`, a task's, from a frame that profiles know.
#[inline(never)]
pub fn begin_task<R>(work: impl FnOnce() -> R) -> R {
    let result = work();
    std::hint::black_box(()); // the frame stays until the work is done
    result
}

/// Holds the tasks back until all have been created.
pub struct Gate {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Gate { reader, writer })
    }

    /// Waits until the gate is open. Allocates nothing, so a forked child may.
    pub fn pass(&self) {
        // A signal may end the wait early: wait again.
        while !self.opens_within(-1) {}
    }

    /// Returns true if it is open.
    pub fn is_open(&self) -> bool {
        self.opens_within(0)
    }

    /// Returns true if it opens within this many milliseconds; with -1, before a signal comes.
    fn opens_within(&self, limit: i32) -> bool {
        let mut poll = libc::pollfd {
            fd: self.reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&mut poll, 1, limit) > 0 }
    }

    /// Lets all tasks through: the byte is never read, so each of them sees it.
    pub fn open(&self) -> io::Result<()> {
        (&self.writer).write_all(&[1])
    }
}

//! The ends of pipes at which to wait for events of open files.

use super::{OpenFile, TTY};
use crate::errno::Errno;
use crate::heap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use ipc::{End, Pipe};
use linux_raw_sys::general::{POLLIN, POLLOUT};
use metal::Metal;

/// An end of a pipe, which stays while this exists, though no file has it open.
pub struct Awaited {
    pipe: Held,
    end: End,
    /// The number of its changes when this was made.
    pub changes: u64,
}

enum Held {
    Shared(Arc<Pipe<Metal>>),
    Static(&'static Pipe<Metal>),
}

impl Deref for Held {
    type Target = Pipe<Metal>;

    fn deref(&self) -> &Pipe<Metal> {
        match self {
            Held::Shared(pipe) => pipe,
            Held::Static(pipe) => pipe,
        }
    }
}

impl Awaited {
    pub(super) fn new(pipe: &Arc<Pipe<Metal>>, end: End) -> Self {
        Self::of(Held::Shared(pipe.clone()), end)
    }

    fn of(pipe: Held, end: End) -> Self {
        let changes = pipe.changes(end);
        Awaited { pipe, end, changes }
    }

    /// The end, and the number of its changes when this was made.
    pub fn parts(&self) -> (&Pipe<Metal>, End, u64) {
        (&self.pipe, self.end, self.changes)
    }
}

impl OpenFile {
    /// Adds the ends whose changes may bring one of the `wanted` events; none if the events never
    /// change.
    pub fn await_events(&self, wanted: u32, to: &mut Vec<Awaited>) -> Result<(), Errno> {
        if let Some(epoll) = self.epoll() {
            return epoll.await_events(to);
        }
        if let Some(event) = self.event() {
            return heap::push(to, Awaited::new(event.signal(), End::Reading));
        }
        if let Some(ticker) = self.ticker() {
            return heap::push(to, Awaited::new(ticker.signal(), End::Reading));
        }
        if self.is_terminal() {
            let input = Held::Static(TTY.input_pipe());
            return heap::push(to, Awaited::of(input, End::Reading));
        }
        let Some((pipe, end)) = self.pipe() else {
            return Ok(());
        };
        if !(self.reads() && self.writes()) {
            return heap::push(to, Awaited::new(pipe, end));
        }
        // With both ends open there is neither an end of the bytes nor an error, and the writing
        // end is mostly ready.
        let ends = [(End::Reading, POLLIN), (End::Writing, POLLOUT)];
        let mut ends = ends.into_iter().filter(|(_, event)| wanted & event != 0);
        ends.try_for_each(|(end, _)| heap::push(to, Awaited::new(pipe, end)))
    }
}

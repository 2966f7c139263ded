//! The ends of pipes at which to wait for events of open files.

use super::{Kind, OpenFile, TTY};
use crate::errno::Errno;
use crate::heap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use ipc::{End, Pipe};
use linux_raw_sys::general::{POLLIN, POLLOUT, POLLRDHUP};
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
        if let Kind::Special(special) = &self.inode().kind {
            return heap::push(to, Awaited::new(special.pipe(), End::Reading));
        }
        if let Some(ticker) = self.ticker() {
            return heap::push(to, Awaited::new(ticker.signal(), End::Reading));
        }
        if self.is_terminal() {
            let input = Held::Static(TTY.input_pipe());
            return heap::push(to, Awaited::of(input, End::Reading));
        }
        let Some([from, into]) = self.ways() else {
            return Ok(());
        };
        // An end tells of the bytes' end and of errors too. The writing one is mostly ready, so a
        // file that can read leaves it out, unless the caller wants its event.
        let may_write = self.writes() && (wanted & POLLOUT != 0 || !self.reads());
        let may_read = self.reads() && (wanted & (POLLIN | POLLRDHUP) != 0 || !may_write);
        let ends = [
            (may_read, from, End::Reading),
            (may_write, into, End::Writing),
        ];
        let mut ends = ends.into_iter().filter(|(is_awaited, ..)| *is_awaited);
        ends.try_for_each(|(_, pipe, end)| heap::push(to, Awaited::new(&pipe, end)))
    }
}

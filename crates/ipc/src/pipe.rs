//! Pipes: bytes in a ring, whoever waits for some or for room, whoever polls.
//!
//! # Protocol
//! Under the pipe's lock are its ring, its ends, its pollers, and `wants`: who sleeps, or is about to. A
//! task that finds no bytes (or no room) sets its bit there, lets the lock go, and sleeps as long as
//! the bit stands. Who brings bytes (or room) clears the bit under the lock and then wakes
//! all that sleep for it; each looks again.
//!
//! ```text
//! reader: lock; empty: set WANTS_BYTES; unlock; sleep(bytes, while WANTS_BYTES); from the top
//! writer: lock; put bytes; was = WANTS_BYTES; clear it; unlock; if was: wake(bytes); tell pollers
//! ```
//! No wake-up is lost: the bit is cleared before the wake, and the kernel looks at it under the lock under
//! which it enqueues and wakes. Nothing is called with the pipe's lock held that may take
//! a lock of the whole kernel.

use crate::Kernel;
use crate::poll::Poller;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell};
use sync::Mutex;
use sync::adaptive::Adaptive;
use sync::lock_class;
use sync::watch::Watched;

lock_class!(
    /// A pipe. Held while bytes are copied.
    pub PipeLock = "pipe", rank 75
);

/// Bytes in a pipe at most, as on Linux and the BSDs.
pub const CAPACITY: usize = 64 << 10;
/// A write of so many bytes is not torn apart by others.
pub const ATOMIC: usize = 4096;

/// Bytes of a cell of the ring: a line.
const LINE: usize = 64;

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end to read from.
    Reading,
    /// The end to write to.
    Writing,
}

/// Why bytes can not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// A pipe, both of its ends open.
pub struct Pipe<M: Machine> {
    state: Mutex<M, Watched<M, Adaptive<M>, PipeLock>, State<M>>,
    /// A bit for each [`End`]: somebody sleeps there, or is about to. Changed under the lock of `state`.
    wants: M::AtomicU32,
}

struct State<M: Machine> {
    ring: Box<[M::Cell<[u8; LINE]>]>,
    /// Bytes ever read, and ever written.
    read: usize,
    written: usize,
    /// Whether the ends are open.
    open: [bool; 2],
    /// Who polls which end; a poller stays where it is as long as it stands here.
    pollers: Vec<(End, PollerRef<M>)>,
}

/// A poller that is registered.
struct PollerRef<M: Machine>(*const Poller<M>);

// SAFETY: followed under the pipe's lock only, under which the poller takes itself out
// before it goes.
unsafe impl<M: Machine> Send for PollerRef<M> {}

impl End {
    /// Its bit, and what is added to the pipe's address for the key of who sleeps there.
    const fn bit(self) -> usize {
        match self {
            End::Reading => 1,
            End::Writing => 2,
        }
    }

    const fn other(self) -> End {
        match self {
            End::Reading => End::Writing,
            End::Writing => End::Reading,
        }
    }
}

impl<M: Machine> Pipe<M> {
    /// An empty pipe.
    pub fn new() -> Self {
        let line = || M::Cell::new([0; LINE]);
        Pipe {
            state: Mutex::new(State {
                ring: (0..CAPACITY / LINE).map(|_| line()).collect(),
                read: 0,
                written: 0,
                open: [true; 2],
                pollers: Vec::new(),
            }),
            wants: M::AtomicU32::new(0),
        }
    }

    /// Reads what there is, waiting for the first byte; how many, 0 at the end: nothing is left and
    /// nobody can write.
    pub fn read<K: Kernel<M>>(&self, kernel: &K, bytes: &mut [u8]) -> usize {
        if bytes.is_empty() {
            return 0;
        }
        self.when_ready(kernel, End::Reading, |state| match state.take(bytes) {
            0 if state.open[End::Writing as usize] => None,
            count => Some(count),
        })
    }

    /// Writes all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// If nobody can read; a part may have been written.
    pub fn write<K: Kernel<M>>(&self, kernel: &K, bytes: &[u8]) -> Result<(), Broken> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let whole = rest.len().min(ATOMIC);
            let put = self.when_ready(kernel, End::Writing, |state| {
                if !state.open[End::Reading as usize] {
                    return Some(Err(Broken));
                }
                let room = CAPACITY - (state.written - state.read);
                (room >= whole).then(|| Ok(state.put(&rest[..rest.len().min(room)])))
            })?;
            rest = &rest[put..];
        }
        Ok(())
    }

    /// Closes an end; whoever waits at the other learns of it.
    pub fn close<K: Kernel<M>>(&self, kernel: &K, end: End) {
        let told = {
            let mut state = self.state.lock();
            state.open[end as usize] = false;
            self.change(&mut state, end)
        };
        self.tell(kernel, end, told);
    }

    /// Does `work` at `end` under the lock as soon as it gives something, and tells the other end.
    fn when_ready<R, K: Kernel<M>>(
        &self,
        kernel: &K,
        end: End,
        mut work: impl FnMut(&mut State<M>) -> Option<R>,
    ) -> R {
        let bit = end.bit() as u32;
        loop {
            let mut state = self.state.lock();
            if let Some(result) = work(&mut state) {
                let told = self.change(&mut state, end);
                drop(state);
                self.tell(kernel, end, told);
                return result;
            }
            // Relaxed (here and in `change`): under the lock.
            self.wants.fetch_or(bit, Ordering::Relaxed);
            drop(state);
            // Relaxed: who clears the bit then comes to the kernel's lock for sleepers, under which
            // this is read: either it is seen, or the sleeper is.
            let still = || self.wants.load(Ordering::Relaxed) & bit != 0;
            kernel.sleep(self.key(end), still);
        }
    }

    /// Under the lock, after a change at `end`: whether somebody sleeps at the other, and whether
    /// somebody polls it.
    fn change(&self, state: &mut State<M>, end: End) -> [bool; 2] {
        let bit = end.other().bit() as u32;
        let sleeps = self.wants.load(Ordering::Relaxed) & bit != 0;
        if sleeps {
            self.wants.fetch_and(!bit, Ordering::Relaxed);
        }
        let polled = state.pollers.iter().any(|(at, _)| *at == end.other());
        [sleeps, polled]
    }

    /// Wakes who sleeps and who polls at the other end than `end`.
    fn tell<K: Kernel<M>>(&self, kernel: &K, end: End, [sleeps, polled]: [bool; 2]) {
        if sleeps {
            kernel.wake(self.key(end.other()), usize::MAX);
        }
        kernel.select_wakeup(|| {
            let mut more = polled;
            while more {
                let (poller, others) = self.next_poller(end.other());
                poller.map(|poller| kernel.wake(poller, 1));
                more = others;
            }
        });
    }

    /// Takes a poller of `end` out and tells it; its key, and whether there are more.
    fn next_poller(&self, end: End) -> (Option<*const ()>, bool) {
        let mut state = self.state.lock();
        let pollers = &mut state.pollers;
        let Some(place) = pollers.iter().position(|(at, _)| *at == end) else {
            return (None, false);
        };
        let (_, PollerRef(poller)) = pollers.swap_remove(place);
        // SAFETY: it was registered, and the lock is held.
        let key = unsafe { &*poller }.tell();
        (Some(key), pollers.iter().any(|(at, _)| *at == end))
    }

    /// Whether one could read or write at `end` without waiting, or would learn that it is of no
    /// use. If not, `poller` is told when that changes.
    ///
    /// # Safety
    /// The poller stays where it is until [`Pipe::forget`].
    pub(crate) unsafe fn look(&self, end: End, poller: Option<&Poller<M>>) -> bool {
        let mut state = self.state.lock();
        let used = state.written - state.read;
        let ready = match end {
            End::Reading => used > 0,
            End::Writing => CAPACITY - used >= ATOMIC,
        };
        let ready = ready || !state.open[end.other() as usize];
        if let Some(poller) = poller.filter(|_| !ready) {
            state.pollers.push((end, PollerRef(poller)));
        }
        ready
    }

    /// The poller will not be told any more.
    pub(crate) fn forget(&self, poller: &Poller<M>) {
        let mut state = self.state.lock();
        state.pollers.retain(|(_, one)| !ptr::eq(one.0, poller));
    }

    fn key(&self, end: End) -> *const () {
        ptr::from_ref(self)
            .cast::<()>()
            .wrapping_byte_add(end.bit())
    }

    /// Says what is where, for machines that account for lines by name.
    pub fn label(&self) {
        M::label_value(self, "Pipe");
        let state = self.state.lock();
        M::label_value::<[_]>(&state.ring, "Pipe.ring");
    }
}

impl<M: Machine> Default for Pipe<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> State<M> {
    /// Copies out of the ring; how many bytes.
    fn take(&mut self, bytes: &mut [u8]) -> usize {
        let count = bytes.len().min(self.written - self.read);
        for (line, at, part) in pieces(self.read, count) {
            // SAFETY: under the pipe's lock.
            let line = unsafe { &*self.ring[line].read() };
            bytes[part.clone()].copy_from_slice(&line[at..at + part.len()]);
        }
        self.read += count;
        count
    }

    /// Copies into the ring, which has room; how many bytes.
    fn put(&mut self, bytes: &[u8]) -> usize {
        for (line, at, part) in pieces(self.written, bytes.len()) {
            // SAFETY: under the pipe's lock.
            let line = unsafe { &mut *self.ring[line].write() };
            line[at..at + part.len()].copy_from_slice(&bytes[part]);
        }
        self.written += bytes.len();
        bytes.len()
    }
}

/// The lines that `count` bytes from position `from` on lie in: which, where in it, which of the
/// bytes.
fn pieces(
    from: usize,
    count: usize,
) -> impl Iterator<Item = (usize, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let place = (from + done) % CAPACITY;
        let (line, at) = (place / LINE, place % LINE);
        let part = done..(done + LINE - at).min(count);
        done = part.end;
        (!part.is_empty()).then_some((line, at, part))
    })
}

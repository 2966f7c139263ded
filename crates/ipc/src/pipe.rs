//! Pipes: bytes in a ring, tasks that wait for bytes or for room, and pollers.
//!
//! # Protocol
//! The pipe's lock guards its ring, its ends, its pollers, and `wants`: the ends at which tasks
//! sleep or are about to. A task that finds no bytes (or no room) sets its bit there, releases the
//! lock, and sleeps as long as the bit is set. A task that adds bytes (or room) clears the bit
//! under the lock and then wakes all sleepers at that end; each checks again.
//!
//! ```text
//! reader: lock; empty: set WANTS_BYTES; unlock; sleep(bytes, while WANTS_BYTES); from the top
//! writer: lock; put bytes; was = WANTS_BYTES; clear it; unlock; if was: wake(bytes); tell pollers
//! ```
//! No wake-up is lost: the bit is cleared before the wake, and the kernel checks it under the lock
//! under which it enqueues and wakes. With the pipe's lock held, no function is called that may
//! take a lock of the whole kernel.

use crate::Kernel;
use crate::poll::Poller;
use alloc::boxed::Box;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use core::error::Error;
use core::{fmt, ptr};
use machine::{Atomic, AtomicInt, Atomics, Machine, Ordering, SharedCell};
use sync::Mutex;
use sync::adaptive::Adaptive;
use sync::lock_class;
use sync::watch::Watched;

lock_class!(
    /// The lock of a pipe. Held while bytes are copied.
    pub PipeLock = "pipe", rank 75
);

/// Bytes in a new pipe at most, as on Linux and the BSDs.
pub const CAPACITY: usize = 64 << 10;
/// A write of up to this many bytes is atomic: no other write divides it.
pub const ATOMIC: usize = 4096;

/// Bytes of a cell of the ring: a cache line.
const LINE: usize = 64;

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end to read from.
    Reading,
    /// The end to write to.
    Writing,
}

/// The other end is closed, so bytes cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pipe's reading end is closed")
    }
}

impl Error for Broken {}

/// Why a pipe keeps its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresized {
    /// It contains more bytes than the new capacity.
    Full,
    /// Memory is short.
    NoMemory,
}

impl fmt::Display for Unresized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unresized::Full => "the pipe holds more bytes than it is to",
            Unresized::NoMemory => "there is no memory for the pipe",
        })
    }
}

impl Error for Unresized {}

/// A pipe, both of its ends open.
pub struct Pipe<M: Machine> {
    state: Mutex<M, Watched<M, Adaptive<M>, PipeLock>, State<M>>,
    /// A bit for each [`End`]: tasks sleep there, or are about to. Changed under the lock of
    /// `state`.
    wants: M::AtomicU32,
}

/// The lines of a ring: a power of two.
type Ring<M> = Box<[<M as Atomics>::Cell<[u8; LINE]>]>;

struct State<M: Machine> {
    ring: Ring<M>,
    /// Bytes read so far, and bytes written so far.
    read: usize,
    written: usize,
    /// True if the ends are open.
    open: [bool; 2],
    /// How often the other end of each has changed something.
    changes: [u64; 2],
    /// The pollers of each end; a poller stays in place while it is registered here.
    pollers: Vec<(End, PollerRef<M>)>,
}

/// A registered poller.
struct PollerRef<M: Machine>(*const Poller<M>);

// SAFETY: followed only under the pipe's lock, under which the poller unregisters itself before it
// goes.
unsafe impl<M: Machine> Send for PollerRef<M> {}

impl End {
    /// The end's bit, and the offset from the pipe's address that makes the key of its sleepers.
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
        Self::try_new().expect("memory for a pipe")
    }

    /// An empty pipe, if there is memory for it.
    ///
    /// # Errors
    /// If there is none.
    pub fn try_new() -> Result<Self, TryReserveError> {
        Self::of_size(CAPACITY)
    }

    /// An empty pipe for `bytes` at most: a power of two, and at least [`ATOMIC`].
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn of_size(bytes: usize) -> Result<Self, TryReserveError> {
        assert!(bytes.is_power_of_two() && bytes >= ATOMIC, "{bytes} bytes");
        Ok(Pipe {
            state: Mutex::new(State {
                ring: ring::<M>(bytes)?,
                read: 0,
                written: 0,
                open: [true; 2],
                changes: [0; 2],
                pollers: Vec::new(),
            }),
            wants: M::AtomicU32::new(0),
        })
    }

    /// Reads the available bytes, waiting for the first one; returns how many. 0 means the end: the
    /// pipe is empty and its writing end closed.
    pub fn read<K: Kernel<M>>(&self, kernel: &K, bytes: &mut [u8]) -> usize {
        let read = self.read_while(kernel, bytes, || true);
        read.expect("it waits as long as it takes")
    }

    /// Reads, and waits for bytes while `waits` returns true; it is called before each sleep.
    /// Returns `None` if it would have to wait longer.
    pub fn read_while<K: Kernel<M>>(
        &self,
        kernel: &K,
        bytes: &mut [u8],
        waits: impl Fn() -> bool,
    ) -> Option<usize> {
        let mut done = 0;
        self.read_with(kernel, bytes.len(), waits, |part| {
            bytes[done..done + part.len()].copy_from_slice(part);
            done += part.len();
            true
        })
    }

    /// Hands at most `most` bytes over to `deliver`, part by part, under the pipe's lock, and waits
    /// for them while `waits` holds. Where `deliver` refuses a part, the bytes of its [`ATOMIC`]
    /// stay in the pipe, including those that it took before.
    pub fn read_with<K: Kernel<M>>(
        &self,
        kernel: &K,
        most: usize,
        waits: impl Fn() -> bool,
        deliver: impl FnMut(&[u8]) -> bool,
    ) -> Option<usize> {
        if most == 0 {
            return Some(0);
        }
        self.read_up_to(kernel, |_| most, waits, deliver)
    }

    /// Reads as [`Pipe::read_with`] does, but calls `most`, under the pipe's lock, with the number
    /// of bytes read from the pipe before.
    pub fn read_up_to<K: Kernel<M>>(
        &self,
        kernel: &K,
        most: impl Fn(usize) -> usize,
        waits: impl Fn() -> bool,
        mut deliver: impl FnMut(&[u8]) -> bool,
    ) -> Option<usize> {
        self.when_ready(kernel, End::Reading, waits, |state| match state.used() {
            0 if state.open[End::Writing as usize] => None,
            _ => Some(state.take(most(state.read), &mut deliver)),
        })
    }

    /// Hands bytes over as [`Pipe::read_up_to`] does, and keeps them in the pipe. Returns how many
    /// `deliver` took.
    pub fn peek<K: Kernel<M>>(
        &self,
        kernel: &K,
        most: impl Fn(usize) -> usize,
        waits: impl Fn() -> bool,
        mut deliver: impl FnMut(&[u8]) -> bool,
    ) -> Option<usize> {
        self.when_ready(kernel, End::Reading, waits, |state| match state.used() {
            0 if state.open[End::Writing as usize] => None,
            _ => {
                let start = state.read;
                let count = state.take(most(start), &mut deliver);
                state.read = start;
                Some(count)
            }
        })
    }

    /// Writes all of `bytes`, waiting for room.
    ///
    /// # Errors
    /// If the reading end is closed; a part may have been written.
    pub fn write<K: Kernel<M>>(&self, kernel: &K, bytes: &[u8]) -> Result<(), Broken> {
        self.write_while(kernel, bytes, || true).map(drop)
    }

    /// Writes, and waits for room while `waits` returns true; it is called before each sleep.
    /// Returns how many bytes were written.
    pub fn write_while<K: Kernel<M>>(
        &self,
        kernel: &K,
        bytes: &[u8],
        waits: impl Fn() -> bool,
    ) -> Result<usize, Broken> {
        self.write_at(kernel, bytes, waits, |_, _| ())
    }

    /// Writes as [`Pipe::write_while`] does, and calls `at`, under the pipe's lock and before each
    /// part of the bytes, with the number of bytes written to the pipe before, and the part's.
    ///
    /// # Errors
    /// If the reading end is closed; a part may have been written.
    pub fn write_at<K: Kernel<M>>(
        &self,
        kernel: &K,
        bytes: &[u8],
        waits: impl Fn() -> bool,
        mut at: impl FnMut(usize, usize),
    ) -> Result<usize, Broken> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let whole = rest.len().min(ATOMIC);
            let put = self.when_ready(kernel, End::Writing, &waits, |state| {
                if !state.open[End::Reading as usize] {
                    return Some(Err(Broken));
                }
                let room = state.capacity() - state.used();
                (room >= whole).then(|| {
                    let part = &rest[..rest.len().min(room)];
                    at(state.written, part.len());
                    Ok(state.put(part))
                })
            });
            match put {
                Some(put) => done += put?,
                None => break,
            }
        }
        Ok(done)
    }

    /// Opens an end that is closed, and tells the tasks that wait at the other. The two ends of a
    /// new pipe are open.
    pub fn open<K: Kernel<M>>(&self, kernel: &K, end: End) {
        self.set_open(kernel, end, true);
    }

    /// Closes an end and tells the tasks that wait at the other.
    pub fn close<K: Kernel<M>>(&self, kernel: &K, end: End) {
        self.set_open(kernel, end, false);
    }

    fn set_open<K: Kernel<M>>(&self, kernel: &K, end: End, is_open: bool) {
        let told = {
            let mut state = self.state.lock();
            state.open[end as usize] = is_open;
            self.change(&mut state, end)
        };
        self.tell(kernel, end, told);
    }

    /// Runs `work` at `end` under the lock until it returns something, sleeping in between while
    /// `waits` holds; then tells the other end.
    fn when_ready<R, K: Kernel<M>>(
        &self,
        kernel: &K,
        end: End,
        waits: impl Fn() -> bool,
        mut work: impl FnMut(&mut State<M>) -> Option<R>,
    ) -> Option<R> {
        let bit = end.bit() as u32;
        loop {
            let mut state = self.state.lock();
            if let Some(result) = work(&mut state) {
                let told = self.change(&mut state, end);
                drop(state);
                self.tell(kernel, end, told);
                return Some(result);
            }
            if !waits() {
                return None;
            }
            // Relaxed (here and in `change`): the pipe's lock orders it.
            self.wants.fetch_or(bit, Ordering::Relaxed);
            drop(state);
            // Relaxed: the task that clears the bit then takes the kernel's lock for sleepers,
            // under which this is read: either the load sees the cleared bit, or the wake finds the
            // sleeper.
            let still = || self.wants.load(Ordering::Relaxed) & bit != 0;
            kernel.sleep(self.key(end), still);
        }
    }

    /// Called under the lock, after a change at `end`. Returns true, for sleepers and for pollers,
    /// if the other end has some.
    fn change(&self, state: &mut State<M>, end: End) -> [bool; 2] {
        state.changes[end.other() as usize] += 1;
        let bit = end.other().bit() as u32;
        let sleeps = self.wants.load(Ordering::Relaxed) & bit != 0;
        if sleeps {
            self.wants.fetch_and(!bit, Ordering::Relaxed);
        }
        let polled = state.pollers.iter().any(|(at, _)| *at == end.other());
        [sleeps, polled]
    }

    /// Wakes the sleepers and pollers of the other end than `end`.
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

    /// Unregisters a poller of `end` and tells it; returns its key, and true if there are more.
    fn next_poller(&self, end: End) -> (Option<*const ()>, bool) {
        let mut state = self.state.lock();
        let pollers = &mut state.pollers;
        let Some(place) = pollers.iter().position(|(at, _)| *at == end) else {
            return (None, false);
        };
        let (_, PollerRef(poller)) = pollers.swap_remove(place);
        // SAFETY: a registered poller stays in place, and the lock is held.
        let key = unsafe { &*poller }.tell();
        (Some(key), pollers.iter().any(|(at, _)| *at == end))
    }

    /// Returns true if a read or write at `end` would not wait, or would fail at once because the
    /// other end is closed, and if there are other changes than those `seen`. If not, `poller` is
    /// told when that changes; without room for it on the list at once, so that it looks again.
    ///
    /// # Safety
    /// The poller stays in place until [`Pipe::forget`].
    pub(crate) unsafe fn look(
        &self,
        end: End,
        seen: Option<u64>,
        poller: Option<&Poller<M>>,
    ) -> bool {
        let mut state = self.state.lock();
        let used = state.used();
        let ready = match end {
            End::Reading => used > 0,
            End::Writing => state.capacity() - used >= ATOMIC,
        };
        let ready = ready || !state.open[end.other() as usize];
        let ready = ready && seen != Some(state.changes[end as usize]);
        if let Some(poller) = poller.filter(|_| !ready) {
            match state.pollers.try_reserve(1) {
                Ok(()) => state.pollers.push((end, PollerRef(poller))),
                Err(_) => {
                    poller.tell();
                }
            }
        }
        ready
    }

    /// The number of bytes that may be read or written at `end` now, and true if the other end is
    /// closed.
    pub fn room(&self, end: End) -> (usize, bool) {
        let state = self.state.lock();
        let used = state.used();
        let bytes = match end {
            End::Reading => used,
            End::Writing => state.capacity() - used,
        };
        (bytes, !state.open[end.other() as usize])
    }

    /// How often `end` may have become ready: the number of changes at the other end.
    pub fn changes(&self, end: End) -> u64 {
        self.state.lock().changes[end as usize]
    }

    /// Counts as a change at `end`, though no byte moves.
    pub fn touch<K: Kernel<M>>(&self, kernel: &K, end: End) {
        let told = self.change(&mut self.state.lock(), end);
        self.tell(kernel, end, told);
    }

    /// The most bytes that the pipe holds.
    pub fn capacity(&self) -> usize {
        self.state.lock().capacity()
    }

    /// Changes its capacity to `bytes`: a power of two, and at least [`ATOMIC`]. Writers that wait
    /// for room look again.
    ///
    /// # Errors
    /// If it holds more bytes, or there is no memory.
    pub fn resize<K: Kernel<M>>(&self, kernel: &K, bytes: usize) -> Result<(), Unresized> {
        assert!(bytes.is_power_of_two() && bytes >= ATOMIC, "{bytes} bytes");
        let mut ring = ring::<M>(bytes).map_err(|_| Unresized::NoMemory)?;
        let told = {
            let mut state = self.state.lock();
            if state.used() > bytes {
                return Err(Unresized::Full);
            }
            state.move_to(&mut ring);
            self.change(&mut state, End::Reading)
        };
        // The old ring is freed without the lock.
        drop(ring);
        self.tell(kernel, End::Reading, told);
        Ok(())
    }

    /// Unregisters the poller.
    pub(crate) fn forget(&self, poller: &Poller<M>) {
        let mut state = self.state.lock();
        state.pollers.retain(|(_, one)| !ptr::eq(one.0, poller));
    }

    fn key(&self, end: End) -> *const () {
        ptr::from_ref(self)
            .cast::<()>()
            .wrapping_byte_add(end.bit())
    }

    /// Labels the pipe's parts, for machines that attribute cache lines to names.
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
    fn used(&self) -> usize {
        self.written - self.read
    }

    fn capacity(&self) -> usize {
        self.ring.len() * LINE
    }

    /// Moves the bytes to another ring, which has room, and exchanges the rings. A byte keeps its
    /// place in a line.
    fn move_to(&mut self, ring: &mut Ring<M>) {
        for (line, at, part) in pieces(self.read, self.used()) {
            // SAFETY: the caller holds the pipe's lock, so no other task accesses its ring, and
            // none has the new one.
            let (from, to) = unsafe {
                let from = &*cell::<M>(&self.ring, line).read();
                (from, &mut *cell::<M>(ring, line).write())
            };
            to[at..at + part.len()].copy_from_slice(&from[at..at + part.len()]);
        }
        core::mem::swap(&mut self.ring, ring);
    }

    /// Takes at most `most` bytes out of the ring, and hands them to `deliver`; returns how many.
    fn take(&mut self, most: usize, deliver: &mut impl FnMut(&[u8]) -> bool) -> usize {
        let start = self.read;
        let mut count = most.min(self.used());
        for (line, at, part) in pieces(start, count) {
            // SAFETY: the caller holds the pipe's lock, so no other task accesses the ring.
            let line = unsafe { &*cell::<M>(&self.ring, line).read() };
            if !deliver(&line[at..at + part.len()]) {
                let place = start + part.start;
                count = (place - place % ATOMIC).saturating_sub(start);
                break;
            }
        }
        self.read += count;
        count
    }

    /// Copies into the ring, which has room; returns how many bytes.
    fn put(&mut self, bytes: &[u8]) -> usize {
        for (line, at, part) in pieces(self.written, bytes.len()) {
            // SAFETY: the caller holds the pipe's lock, so no other task accesses the ring.
            let line = unsafe { &mut *cell::<M>(&self.ring, line).write() };
            line[at..at + part.len()].copy_from_slice(&bytes[part]);
        }
        self.written += bytes.len();
        bytes.len()
    }
}

/// A ring of this many bytes.
fn ring<M: Machine>(bytes: usize) -> Result<Ring<M>, TryReserveError> {
    let mut ring = Vec::new();
    ring.try_reserve_exact(bytes / LINE)?;
    ring.resize_with(bytes / LINE, || M::Cell::new([0; LINE]));
    Ok(ring.into_boxed_slice())
}

/// The cell of a line, whatever the length of the ring.
fn cell<M: Machine>(ring: &[M::Cell<[u8; LINE]>], line: usize) -> &M::Cell<[u8; LINE]> {
    &ring[line & (ring.len() - 1)]
}

/// The lines that hold `count` bytes from position `from` on: which line, counted from the first
/// byte ever, the place in it, and which of the bytes.
fn pieces(
    from: usize,
    count: usize,
) -> impl Iterator<Item = (usize, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let place = from + done;
        let (line, at) = (place / LINE, place % LINE);
        let part = done..(done + LINE - at).min(count);
        done = part.end;
        (!part.is_empty()).then_some((line, at, part))
    })
}

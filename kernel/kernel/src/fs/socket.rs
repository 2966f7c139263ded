//! Unix stream sockets: two pipes back to back.
//!
//! A way from one socket to the other is shut as a whole, by either of them: its reader then gets
//! the bytes that are left, and the end after them; its writer gets an error. A socket that is
//! closed shuts both ways.
//!
//! A new socket has its pipes already. When it is connected to one that listens, the other side of
//! its pair waits there to be accepted. A listening socket reads a byte from its own incoming way
//! for each that waits, so that threads wait for them as for bytes.
//!
//! Locks: the queue of a listening socket, then the address of another one.

use super::{Inode, Name};
use crate::errno::Errno;
use crate::event_count::EventCount;
use crate::single::Single;
use crate::system::{Lock, system};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ipc::pipe::ATOMIC;
use ipc::{End, Pipe};
use linux_raw_sys::general::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use metal::Metal;

/// The sockets with abstract names, which are in no directory. A name leaves with its socket.
pub static ABSTRACT: Single<Lock<BTreeMap<Name, Weak<Inode>>>> = Single::new();

/// A socket.
pub struct Socket {
    pair: Arc<Pair>,
    /// The socket's index in the pair.
    side: usize,
    /// What it is: one of the constants below. Relaxed, as the locks of the queue and of the ways
    /// order what depends on it.
    role: AtomicU32,
    /// True if it has its address by itself, not from the one at which it waited.
    is_bound: AtomicBool,
    /// The sockets that wait to be accepted.
    queue: Lock<Queue>,
    /// Changes of the queue that make room.
    room: EventCount,
}

/// A socket that is neither connected nor listens.
const NEW: u32 = 0;
const CONNECTED: u32 = 1;
const LISTENING: u32 = 2;
const CLOSED: u32 = 3;

/// What two connected sockets share.
struct Pair {
    /// The pipes from which each of them reads, and to which the other one writes.
    ways: [Arc<Pipe<Metal>>; 2],
    /// True if the other one was closed before it had read all bytes. Set before the ways are shut,
    /// whose locks order it: relaxed.
    is_reset: [AtomicBool; 2],
    /// The addresses: a path and a 0, or a 0 and any bytes; empty without one.
    addresses: [Lock<Name>; 2],
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Socket>,
    /// The most sockets that may wait before another one.
    most: usize,
}

impl Socket {
    /// A socket that is not connected.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self::of(Pair::new()?, 0, NEW))
    }

    /// Two sockets that are connected to each other.
    pub fn pair() -> Result<[Self; 2], Errno> {
        let pair = Pair::new()?;
        Ok([0, 1].map(|side| Self::of(pair.clone(), side, CONNECTED)))
    }

    fn of(pair: Arc<Pair>, side: usize, role: u32) -> Self {
        Socket {
            pair,
            side,
            role: AtomicU32::new(role),
            is_bound: AtomicBool::new(false),
            queue: Lock::new(Queue::default()),
            room: EventCount::default(),
        }
    }

    fn other(&self) -> usize {
        1 - self.side
    }

    fn is(&self, role: u32) -> bool {
        self.role.load(Ordering::Relaxed) == role
    }

    /// Returns true if it is connected.
    pub fn is_connected(&self) -> bool {
        self.is(CONNECTED)
    }

    /// Returns true if it listens.
    pub fn listens(&self) -> bool {
        self.is(LISTENING)
    }

    /// Its own address.
    pub fn address(&self) -> Name {
        self.pair.addresses[self.side].lock().clone()
    }

    /// The address of the socket to which it is connected.
    pub fn peer(&self) -> Name {
        self.pair.addresses[self.other()].lock().clone()
    }

    /// Gives it an address, if it has none and `take` succeeds.
    pub fn bind(
        &self,
        address: Name,
        take: impl FnOnce(&Name) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut own = self.pair.addresses[self.side].lock();
        if !own.is_empty() {
            return Err(Errno::INVAL);
        }
        take(&address)?;
        *own = address;
        self.is_bound.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Lets others connect to it. One may wait to be accepted if at most `most` others do.
    pub fn listen(&self, most: usize) -> Result<(), Errno> {
        let mut queue = self.queue.lock();
        if !(self.is(NEW) && !self.address().is_empty() || self.listens()) {
            return Err(Errno::INVAL);
        }
        queue.most = most;
        self.role.store(LISTENING, Ordering::Relaxed);
        self.room.advance();
        drop(queue);
        self.room.wake();
        Ok(())
    }

    /// Connects it to a socket that listens, and waits for room there while `waits` returns true.
    /// Returns false once it does not.
    pub fn connect(&self, to: &Socket, waits: impl Fn() -> bool) -> Result<bool, Errno> {
        let role = &self.role;
        let was = role.compare_exchange(NEW, CONNECTED, Ordering::Relaxed, Ordering::Relaxed);
        match was {
            Ok(_) => {}
            Err(CONNECTED) => return Err(Errno::ISCONN),
            Err(_) => return Err(Errno::INVAL),
        }
        let is_queued = self.queue_at(to, waits);
        if is_queued != Ok(true) {
            role.store(NEW, Ordering::Relaxed);
        }
        is_queued
    }

    fn queue_at(&self, to: &Socket, waits: impl Fn() -> bool) -> Result<bool, Errno> {
        loop {
            let mut queue = to.queue.lock();
            if !to.listens() {
                return Err(Errno::CONNREFUSED);
            }
            if queue.waiting.len() <= queue.most {
                let reserved = queue.waiting.try_reserve(1);
                reserved.map_err(|_| Errno::NOMEM)?;
                *self.pair.addresses[self.other()].lock() = to.address();
                let other = Self::of(self.pair.clone(), self.other(), CONNECTED);
                queue.waiting.push_back(other);
                drop(queue);
                // There is room for more than may wait.
                let _ = to.incoming().write(&system().kernel, &[0]);
                return Ok(true);
            }
            let seen = to.room.read();
            drop(queue);
            if !waits() {
                return Ok(false);
            }
            to.room.wait(seen);
        }
    }

    /// Takes the socket that has waited longest, and waits for one while `waits` returns true;
    /// `None` once it does not.
    pub fn accept(&self, waits: impl Fn() -> bool) -> Result<Option<Self>, Errno> {
        if !self.listens() {
            return Err(Errno::INVAL);
        }
        let kernel = &system().kernel;
        match self.incoming().read_while(kernel, &mut [0], waits) {
            None => return Ok(None),
            Some(0) => return Err(Errno::INVAL),
            Some(_) => {}
        }
        let mut queue = self.queue.lock();
        let accepted = queue.waiting.pop_front();
        self.room.advance();
        drop(queue);
        self.room.wake();
        accepted.map(Some).ok_or(Errno::INVAL)
    }

    /// The pipe from which it reads.
    pub fn incoming(&self) -> &Arc<Pipe<Metal>> {
        &self.pair.ways[self.side]
    }

    /// The pipe to which it writes.
    pub fn outgoing(&self) -> &Arc<Pipe<Metal>> {
        &self.pair.ways[self.other()]
    }

    /// Shuts the way to this socket, the way from it, or both.
    pub fn shut(&self, [incoming, outgoing]: [bool; 2]) {
        let kernel = &system().kernel;
        let ways = [(self.incoming(), incoming), (self.outgoing(), outgoing)];
        for (way, _) in ways.into_iter().filter(|(_, is_shut)| *is_shut) {
            way.close(kernel, End::Writing);
            way.close(kernel, End::Reading);
        }
        // A thread that waits at one way for the end of both looks again.
        for (way, _) in ways {
            way.touch(kernel, End::Writing);
            way.touch(kernel, End::Reading);
        }
    }

    /// Called when its file is closed.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        let was = self.role.swap(CLOSED, Ordering::Relaxed);
        let waiting = core::mem::take(&mut queue.waiting);
        self.room.advance();
        drop(queue);
        self.room.wake();
        waiting.into_iter().for_each(|one| one.end(true));
        let address = self.address();
        if self.is_bound.load(Ordering::Relaxed) && address.first() == Some(&0) {
            ABSTRACT.lock().remove(&address);
        }
        self.end(was == LISTENING);
    }

    /// Shuts both ways. The other side gets an error if there are bytes that nobody has read, or if
    /// `is_reset` says so.
    fn end(&self, is_reset: bool) {
        // From here on no byte comes.
        self.shut([true, false]);
        if is_reset || self.incoming().room(End::Reading).0 > 0 {
            self.pair.is_reset[self.other()].store(true, Ordering::Relaxed);
        }
        self.shut([true; 2]);
    }

    /// Its error, which is reported once.
    pub fn take_error(&self) -> Option<Errno> {
        let is_reset = self.pair.is_reset[self.side].swap(false, Ordering::Relaxed);
        is_reset.then_some(Errno::CONNRESET)
    }

    /// The events that `poll` reports.
    pub fn events(&self) -> u32 {
        let (bytes, has_end) = self.incoming().room(End::Reading);
        let (room, is_broken) = self.outgoing().room(End::Writing);
        let is_reset = self.pair.is_reset[self.side].load(Ordering::Relaxed);
        let may_write = !self.listens() && (room >= ATOMIC || is_broken);
        let told = [
            (bytes > 0 || has_end, POLLIN),
            (may_write, POLLOUT),
            (has_end, POLLRDHUP),
            (has_end && is_broken || self.is(NEW), POLLHUP),
            (is_reset, POLLERR),
        ];
        told.map(|(is, event)| if is { event } else { 0 })
            .iter()
            .sum()
    }
}

impl Pair {
    fn new() -> Result<Arc<Self>, Errno> {
        let pipe = || Pipe::try_new().map(Arc::new).map_err(|_| Errno::NOMEM);
        Ok(Arc::new(Pair {
            ways: [pipe()?, pipe()?],
            is_reset: [const { AtomicBool::new(false) }; 2],
            addresses: [Lock::new(Name::new()), Lock::new(Name::new())],
        }))
    }
}

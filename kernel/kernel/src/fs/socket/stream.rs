//! Sockets that are connected to one other: two ways back to back.
//!
//! A new socket has its ways already. When it is connected to one that listens, the other side of
//! its pair waits there to be accepted. A listening socket reads a byte from its own incoming way
//! for each that waits, so that threads wait for them as for bytes.
//!
//! Unix sockets shut a way as a whole: its reader gets the bytes that are left, and the end after
//! them; its writer gets an error. A socket that is closed shuts both ways. TCP's sockets shut
//! their own side: a reader gets the end where the writer has shut it, a writer an error once the
//! reader has closed its socket and bytes were sent there.
//!
//! Locks: the queue of a listening socket, then the address of another one.

use super::{Address, Way};
use crate::caller::Identity;
use crate::errno::Errno;
use crate::event_count::EventCount;
use crate::system::{Lock, system};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ipc::{End, poll_changes};
use linux_raw_sys::general::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// A side of a pair.
pub struct Stream {
    pair: Arc<Pair>,
    /// The index in the pair.
    side: usize,
    /// True if it is TCP's.
    is_tcp: bool,
    /// The sockets that wait to be accepted.
    queue: Lock<Queue>,
    /// Changes of the queue that make room.
    room: EventCount,
}

/// What a side is. Relaxed, as the locks of the queue and of the ways order what depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Neither connected nor listening.
    New,
    /// There was no room to wait to be accepted (TCP), so it waits for that.
    Connecting,
    /// Connected, which `connect` has not told yet (TCP).
    Untold,
    Connected,
    /// The connection has failed, which `connect` has not told yet (TCP).
    Failed,
    Listening,
    Closed,
}

const ROLES: [Role; 7] = [
    Role::New,
    Role::Connecting,
    Role::Untold,
    Role::Connected,
    Role::Failed,
    Role::Listening,
    Role::Closed,
];

/// What two connected sockets share.
struct Pair {
    /// The ways from which each of them reads, and to which the other one writes.
    ways: [Way; 2],
    roles: [AtomicU32; 2],
    /// The error of each, which is reported once; 0 for none. Set before the ways are shut, whose
    /// locks order it: relaxed.
    errors: [AtomicU32; 2],
    /// True if each sends no more (TCP).
    is_silent: [AtomicBool; 2],
    addresses: [Lock<Address>; 2],
    /// Who has connected each, or lets it listen.
    owners: [Lock<Option<Identity>>; 2],
    /// True if each asks for the identity of senders.
    asks_sender: [AtomicBool; 2],
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Stream>,
    /// The sockets for which there was no room (TCP).
    late: VecDeque<Stream>,
    /// The most sockets that may wait before another one.
    most: usize,
}

impl Stream {
    /// A socket that is not connected.
    pub fn new(
        way: fn() -> Result<Way, Errno>,
        nowhere: Address,
        is_tcp: bool,
    ) -> Result<Self, Errno> {
        Ok(Self::of(Pair::new([way()?, way()?], nowhere)?, 0, is_tcp))
    }

    /// Two sockets that are connected to each other.
    pub fn pair(way: fn() -> Result<Way, Errno>) -> Result<[Self; 2], Errno> {
        let pair = Pair::new([way()?, way()?], Address::Unnamed)?;
        let owner = system().kernel.caller.identity();
        Ok([0, 1].map(|side| {
            let one = Self::of(pair.clone(), side, false);
            one.become_(Role::Connected);
            *pair.owners[side].lock() = Some(owner);
            one
        }))
    }

    fn of(pair: Arc<Pair>, side: usize, is_tcp: bool) -> Self {
        Stream {
            pair,
            side,
            is_tcp,
            queue: Lock::new(Queue::default()),
            room: EventCount::default(),
        }
    }

    fn other(&self) -> usize {
        1 - self.side
    }

    /// What it is.
    pub fn role(&self) -> Role {
        ROLES[self.pair.roles[self.side].load(Ordering::Relaxed) as usize]
    }

    fn other_role(&self) -> Role {
        ROLES[self.pair.roles[self.other()].load(Ordering::Relaxed) as usize]
    }

    fn become_(&self, role: Role) -> Role {
        let was = self.pair.roles[self.side].swap(role as u32, Ordering::Relaxed);
        ROLES[was as usize]
    }

    fn change(&self, from: Role, to: Role) -> Result<(), Role> {
        let role = &self.pair.roles[self.side];
        let changed =
            role.compare_exchange(from as u32, to as u32, Ordering::Relaxed, Ordering::Relaxed);
        changed.map(drop).map_err(|is| ROLES[is as usize])
    }

    /// Returns true if it is connected.
    pub fn is_connected(&self) -> bool {
        matches!(self.role(), Role::Connected | Role::Untold)
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        self.pair.addresses[self.side].lock().clone()
    }

    /// The address of the socket to which it is connected.
    pub fn peer(&self) -> Address {
        self.pair.addresses[self.other()].lock().clone()
    }

    /// Changes its own address.
    pub fn set_address(&self, address: Address) {
        *self.pair.addresses[self.side].lock() = address;
    }

    /// Who has connected the other one, or lets it listen.
    pub fn peer_owner(&self) -> Option<Identity> {
        *self.pair.owners[self.other()].lock()
    }

    /// Asks for the identity of senders, or no longer.
    pub fn ask_sender(&self, asks: bool) {
        self.pair.asks_sender[self.side].store(asks, Ordering::Relaxed);
    }

    /// Returns true if either asks for the identity of senders.
    pub fn tells_sender(&self) -> bool {
        let mut asks = self.pair.asks_sender.iter();
        asks.any(|asks| asks.load(Ordering::Relaxed))
    }

    /// Lets others connect to it. One may wait to be accepted if at most `most` others do.
    pub fn listen(&self, most: usize) -> Result<(), Errno> {
        let mut queue = self.queue.lock();
        if !matches!(self.role(), Role::New | Role::Listening) {
            return Err(Errno::INVAL);
        }
        queue.most = most;
        self.become_(Role::Listening);
        *self.pair.owners[self.side].lock() = Some(system().kernel.caller.identity());
        self.room.advance();
        drop(queue);
        self.room.wake();
        Ok(())
    }

    /// Connects a Unix socket to one that listens, and waits for room there while `waits` returns
    /// true. Returns false once it does not.
    pub fn connect(&self, to: &Stream, waits: impl Fn() -> bool) -> Result<bool, Errno> {
        match self.change(Role::New, Role::Connected) {
            Ok(()) => {}
            Err(Role::Connected) => return Err(Errno::ISCONN),
            Err(_) => return Err(Errno::INVAL),
        }
        let is_queued = self.queue_at(to, waits);
        if is_queued != Ok(true) {
            self.become_(Role::New);
        }
        is_queued
    }

    fn queue_at(&self, to: &Stream, waits: impl Fn() -> bool) -> Result<bool, Errno> {
        loop {
            let mut queue = to.queue.lock();
            if to.role() != Role::Listening {
                return Err(Errno::CONNREFUSED);
            }
            if queue.waiting.len() <= queue.most {
                *self.pair.addresses[self.other()].lock() = to.address();
                let of_listener = *to.pair.owners[to.side].lock();
                *self.pair.owners[self.other()].lock() = of_listener;
                *self.pair.owners[self.side].lock() = Some(system().kernel.caller.identity());
                let asks = to.pair.asks_sender[to.side].load(Ordering::Relaxed);
                self.pair.asks_sender[self.other()].store(asks, Ordering::Relaxed);
                queue.add(self.accepted())?;
                drop(queue);
                to.announce();
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

    /// The other side of its pair, to be accepted.
    fn accepted(&self) -> Stream {
        let other = Self::of(self.pair.clone(), self.other(), self.is_tcp);
        other.become_(Role::Connected);
        other
    }

    /// Lets one thread that accepts go on.
    fn announce(&self) {
        // There is room for more than may wait.
        let _ = self.incoming().pipe.write(&system().kernel, &[0]);
    }

    /// Starts to connect a TCP socket to the one that listens at `at`, if any does.
    pub fn start(&self, to: Option<&Stream>, at: Address) -> Result<(), Errno> {
        self.change(Role::New, Role::Connecting)
            .map_err(|_| Errno::ALREADY)?;
        *self.pair.addresses[self.other()].lock() = at;
        let Some(to) = to else {
            self.refuse();
            return Ok(());
        };
        let mut queue = to.queue.lock();
        if to.role() != Role::Listening {
            drop(queue);
            self.refuse();
            return Ok(());
        }
        let other = self.accepted();
        if queue.waiting.len() > queue.most {
            return queue.delay(other).inspect_err(|_| {
                self.become_(Role::New);
            });
        }
        queue.add(other).inspect_err(|_| {
            self.become_(Role::New);
        })?;
        self.become_(Role::Untold);
        drop(queue);
        to.announce();
        Ok(())
    }

    /// Waits until it is connected; `None` once `waits` returns false.
    pub fn finish(&self, waits: impl Fn() -> bool) -> Option<Result<(), Errno>> {
        let pipe = &self.outgoing().pipe;
        loop {
            let seen = pipe.changes(End::Writing);
            match self.role() {
                Role::Connecting => {}
                Role::Failed => {
                    self.become_(Role::New);
                    return Some(Err(self.take_error().unwrap_or(Errno::CONNABORTED)));
                }
                _ => {
                    let told = self.change(Role::Untold, Role::Connected);
                    return Some(told.map_err(|_| Errno::ISCONN));
                }
            }
            if !waits() {
                return None;
            }
            let end = [(&**pipe, End::Writing, seen)];
            poll_changes(&system().kernel, end.into_iter(), &waits);
        }
    }

    /// Tells a socket that its connection has failed.
    fn refuse(&self) {
        self.pair.errors[self.side].store(Errno::CONNREFUSED.0 as u32, Ordering::Relaxed);
        if self.change(Role::Connecting, Role::Failed).is_ok() {
            self.touch();
        }
    }

    /// Takes the socket that has waited longest, and waits for one while `waits` returns true;
    /// `None` once it does not.
    pub fn accept(&self, waits: impl Fn() -> bool) -> Result<Option<Self>, Errno> {
        if self.role() != Role::Listening {
            return Err(Errno::INVAL);
        }
        let kernel = &system().kernel;
        match self.incoming().pipe.read_while(kernel, &mut [0], waits) {
            None => return Ok(None),
            Some(0) => return Err(Errno::INVAL),
            Some(_) => {}
        }
        let mut queue = self.queue.lock();
        let accepted = queue.waiting.pop_front();
        let next = queue.admit();
        self.room.advance();
        drop(queue);
        self.room.wake();
        if let Some(client) = next {
            self.announce();
            client.touch();
        }
        accepted.map(Some).ok_or(Errno::INVAL)
    }

    /// The way from which it reads.
    pub fn incoming(&self) -> &Way {
        &self.pair.ways[self.side]
    }

    /// The way to which it writes.
    pub fn outgoing(&self) -> &Way {
        &self.pair.ways[self.other()]
    }

    /// Fails if it cannot send.
    pub fn refuse_sending(&self) -> Result<(), Errno> {
        let is_silent = self.pair.is_silent[self.side].load(Ordering::Relaxed);
        match self.role() {
            Role::Connecting => Err(Errno::AGAIN),
            Role::Connected | Role::Untold if is_silent => {
                Err(self.take_error().unwrap_or(Errno::PIPE))
            }
            Role::Connected | Role::Untold => Ok(()),
            _ if self.is_tcp => Err(self.take_error().unwrap_or(Errno::PIPE)),
            _ => Err(Errno::NOTCONN),
        }
    }

    /// Fails if it cannot receive.
    pub fn refuse_receiving(&self) -> Result<(), Errno> {
        match self.role() {
            Role::Connected | Role::Untold => Ok(()),
            Role::Connecting => Err(Errno::AGAIN),
            _ if self.is_tcp => Err(self.take_error().unwrap_or(Errno::NOTCONN)),
            _ if self.incoming().has_packets() => Err(Errno::NOTCONN),
            _ => Err(Errno::INVAL),
        }
    }

    /// What sending `bytes` means once the other side receives nothing: an error, but TCP's first
    /// bytes are sent before it knows.
    pub fn broken(&self, bytes: usize) -> Result<usize, Errno> {
        let silent = &self.pair.is_silent[self.side];
        if !self.is_tcp || silent.swap(true, Ordering::Relaxed) {
            return Err(Errno::PIPE);
        }
        match self.take_error() {
            Some(error) => Err(error),
            None => {
                self.pair.errors[self.side].store(Errno::PIPE.0 as u32, Ordering::Relaxed);
                self.touch();
                Ok(bytes)
            }
        }
    }

    /// Shuts the way to this socket, the way from it, or both.
    pub fn shut(&self, [incoming, outgoing]: [bool; 2]) -> Result<(), Errno> {
        let kernel = &system().kernel;
        if !self.is_tcp {
            self.close_ways([incoming, outgoing]);
            return Ok(());
        }
        match self.role() {
            Role::Listening if incoming => {
                self.become_(Role::New);
                self.incoming().pipe.close(kernel, End::Writing);
                self.leave();
            }
            Role::Listening => {}
            Role::Connected | Role::Untold => {
                if incoming {
                    // The other side may still send.
                    self.incoming().pipe.close(kernel, End::Writing);
                }
                if outgoing && !self.pair.is_silent[self.side].swap(true, Ordering::Relaxed) {
                    self.outgoing().pipe.close(kernel, End::Writing);
                }
                self.touch();
            }
            _ => return Err(Errno::NOTCONN),
        }
        Ok(())
    }

    fn close_ways(&self, [incoming, outgoing]: [bool; 2]) {
        let kernel = &system().kernel;
        let ways = [(self.incoming(), incoming), (self.outgoing(), outgoing)];
        for (way, _) in ways.into_iter().filter(|(_, is_shut)| *is_shut) {
            way.pipe.close(kernel, End::Writing);
            way.pipe.close(kernel, End::Reading);
        }
        self.touch();
    }

    /// Lets threads that wait for events of either side look again.
    fn touch(&self) {
        for way in &self.pair.ways {
            way.pipe.touch(&system().kernel, End::Writing);
            way.pipe.touch(&system().kernel, End::Reading);
        }
    }

    /// Called when its file is closed. `throws_away` if bytes that it has sent are lost.
    pub fn close(&self, throws_away: bool) {
        let was = self.become_(Role::Closed);
        self.leave();
        self.end(was == Role::Listening || throws_away);
        drop(self.incoming().clear());
    }

    /// Ends the connections that wait to be accepted.
    fn leave(&self) {
        let mut queue = self.queue.lock();
        let waiting = core::mem::take(&mut queue.waiting);
        let late = core::mem::take(&mut queue.late);
        self.room.advance();
        drop(queue);
        self.room.wake();
        for one in waiting {
            one.become_(Role::Closed);
            one.end(true);
            drop(one.incoming().clear());
        }
        for one in late {
            Self::of(one.pair.clone(), one.other(), true).refuse();
        }
    }

    /// Shuts both ways. The other side gets an error if there are bytes that nobody has read, or if
    /// `is_reset` says so.
    fn end(&self, is_reset: bool) {
        let kernel = &system().kernel;
        // From here on no byte comes.
        self.incoming().pipe.close(kernel, End::Reading);
        let has_unread = self.incoming().pipe.room(End::Reading).0 > 0;
        if is_reset || has_unread {
            let error = &self.pair.errors[self.other()];
            error.store(Errno::CONNRESET.0 as u32, Ordering::Relaxed);
            self.pair.is_silent[self.other()].store(self.is_tcp, Ordering::Relaxed);
        }
        self.close_ways([true; 2]);
    }

    /// Its error, which is reported once.
    pub fn take_error(&self) -> Option<Errno> {
        match self.pair.errors[self.side].swap(0, Ordering::Relaxed) {
            0 => None,
            error => Some(Errno(error as usize)),
        }
    }

    /// The events that `poll` reports.
    pub fn events(&self) -> u32 {
        let role = self.role();
        let (bytes, has_end) = self.incoming().pipe.room(End::Reading);
        let is_broken = self.outgoing().pipe.room(End::Writing).1;
        let has_error = self.pair.errors[self.side].load(Ordering::Relaxed) != 0;
        let is_silent = self.pair.is_silent[self.side].load(Ordering::Relaxed);
        // TCP learns that the other side is closed by an error, or when it has sent bytes there.
        let is_over = is_silent || is_broken && (!self.is_tcp || has_error);
        let may_write = self.outgoing().has_room() || is_broken || is_silent;
        let hangs_up = has_end && is_over;
        let told = match role {
            Role::Connecting => [(false, 0); 5],
            Role::Failed => [
                (true, POLLIN),
                (true, POLLOUT),
                (true, POLLRDHUP),
                (true, POLLHUP),
                (has_error, POLLERR),
            ],
            _ => [
                (bytes > 0 || has_end, POLLIN),
                (role != Role::Listening && may_write, POLLOUT),
                (has_end, POLLRDHUP),
                (hangs_up || role == Role::New, POLLHUP),
                (has_error, POLLERR),
            ],
        };
        told.map(|(is, event)| if is { event } else { 0 })
            .iter()
            .sum()
    }
}

impl Queue {
    fn add(&mut self, one: Stream) -> Result<(), Errno> {
        self.waiting.try_reserve(1).map_err(|_| Errno::NOMEM)?;
        self.waiting.push_back(one);
        Ok(())
    }

    /// Adds a socket for which there is no room, and forgets those that were closed meanwhile.
    fn delay(&mut self, one: Stream) -> Result<(), Errno> {
        self.late.retain(|one| one.other_role() == Role::Connecting);
        self.late.try_reserve(1).map_err(|_| Errno::NOMEM)?;
        self.late.push_back(one);
        Ok(())
    }

    /// Lets the first late socket wait to be accepted, if there is room; returns its client.
    fn admit(&mut self) -> Option<Stream> {
        loop {
            if self.waiting.len() > self.most || self.waiting.try_reserve(1).is_err() {
                return None;
            }
            let one = self.late.pop_front()?;
            let client = Stream::of(one.pair.clone(), one.other(), true);
            // It may have been closed meanwhile.
            if client.change(Role::Connecting, Role::Untold).is_ok() {
                self.waiting.push_back(one);
                return Some(client);
            }
        }
    }
}

impl Pair {
    fn new(ways: [Way; 2], nowhere: Address) -> Result<Arc<Self>, Errno> {
        Ok(Arc::new(Pair {
            ways,
            roles: Default::default(),
            errors: Default::default(),
            is_silent: Default::default(),
            addresses: [Lock::new(nowhere.clone()), Lock::new(nowhere)],
            owners: [Lock::new(None), Lock::new(None)],
            asks_sender: Default::default(),
        }))
    }
}

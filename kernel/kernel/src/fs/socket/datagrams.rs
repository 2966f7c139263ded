//! Sockets of datagrams: each has a way to it, on which any other may send.

use super::way::{Packet, Way};
use super::{Address, Socket};
use crate::errno::Errno;
use crate::system::{Lock, system};
use alloc::sync::{Arc, Weak};
use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ipc::End;
use linux_raw_sys::general::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// A socket's own state.
pub struct Datagrams {
    /// What it receives.
    pub incoming: Way,
    address: Lock<Address>,
    peer: Lock<Option<Peer>>,
    /// An error that is reported once; 0 for none.
    error: AtomicU32,
    /// True if it receives, or sends, no more.
    is_shut: [AtomicBool; 2],
    is_closed: AtomicBool,
}

/// The only socket with which one exchanges datagrams.
#[derive(Clone)]
struct Peer {
    address: Address,
    /// The Unix socket. One with a port is found when it is sent something.
    socket: Weak<Socket>,
}

impl Datagrams {
    /// A socket without a peer.
    pub fn new(nowhere: Address) -> Result<Self, Errno> {
        Ok(Datagrams {
            incoming: Way::of_packets()?,
            address: Lock::new(nowhere),
            peer: Lock::new(None),
            error: AtomicU32::new(0),
            is_shut: Default::default(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        self.address.lock().clone()
    }

    /// Changes its own address.
    pub fn set_address(&self, address: Address) {
        *self.address.lock() = address;
    }

    /// The address of its peer, if it has one.
    pub fn peer(&self) -> Option<Address> {
        self.peer.lock().as_ref().map(|peer| peer.address.clone())
    }

    /// The Unix socket that is its peer.
    pub fn peer_socket(&self) -> Option<Arc<Socket>> {
        let peer = self.peer.lock();
        peer.as_ref()?.socket.upgrade()
    }

    /// Gives it a Unix socket as its peer.
    pub fn connect(&self, to: &Arc<Socket>) {
        let (address, socket) = (to.address(), Arc::downgrade(to));
        self.set_peer(Some(Peer { address, socket }));
    }

    /// Gives it the peer with this port.
    pub fn connect_port(&self, to: SocketAddr) {
        let (address, socket) = (Address::Internet(to), Weak::new());
        self.set_peer(Some(Peer { address, socket }));
    }

    /// Takes its peer away.
    pub fn disconnect(&self) {
        self.set_peer(None);
    }

    fn set_peer(&self, peer: Option<Peer>) {
        let old = core::mem::replace(&mut *self.peer.lock(), peer);
        drop(old);
        self.touch();
    }

    /// Returns true if it takes datagrams from this socket.
    pub fn takes_from(&self, one: &Arc<Socket>) -> bool {
        let peer = self.peer.lock();
        peer.as_ref()
            .is_none_or(|peer| peer.socket.ptr_eq(&Arc::downgrade(one)))
    }

    /// Returns true if it takes datagrams from this port.
    pub fn takes_from_port(&self, at: SocketAddr) -> bool {
        let peer = self.peer.lock();
        peer.as_ref()
            .is_none_or(|peer| peer.address == Address::Internet(at))
    }

    /// Takes a datagram, and waits for room while `waits` returns true. Gives it back when it does
    /// not.
    pub fn take(&self, packet: Packet, waits: impl Fn() -> bool) -> Result<Option<Packet>, Errno> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Errno::CONNREFUSED);
        }
        let taken = self.incoming.push(packet, waits);
        let is_closed = self.is_closed.load(Ordering::Relaxed);
        taken.map_err(|error| if is_closed { Errno::CONNREFUSED } else { error })
    }

    /// Returns true if it is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns true if it sends no more.
    pub fn is_silent(&self) -> bool {
        self.is_shut[1].load(Ordering::Relaxed)
    }

    /// Receives no more, sends no more, or both.
    pub fn shut(&self, ways: [bool; 2]) {
        for (shut, is) in self.is_shut.iter().zip(ways) {
            shut.fetch_or(is, Ordering::Relaxed);
        }
        let kernel = &system().kernel;
        if ways[0] {
            self.incoming.pipe.close(kernel, End::Writing);
            self.incoming.pipe.close(kernel, End::Reading);
        }
        self.touch();
    }

    /// Lets threads that wait for its events look again.
    fn touch(&self) {
        self.incoming.pipe.touch(&system().kernel, End::Writing);
        self.incoming.pipe.touch(&system().kernel, End::Reading);
    }

    /// Called when its file is closed.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.shut([true; 2]);
        self.disconnect();
        drop(self.incoming.clear());
    }

    /// Reports that nobody has the port to which it sent something.
    pub fn fail(&self, error: Errno) {
        self.error.store(error.0 as u32, Ordering::Relaxed);
        self.touch();
    }

    /// Its error, which is reported once.
    pub fn take_error(&self) -> Option<Errno> {
        match self.error.swap(0, Ordering::Relaxed) {
            0 => None,
            error => Some(Errno(error as usize)),
        }
    }

    /// The events that `poll` reports.
    pub fn events(&self) -> u32 {
        let [is_deaf, is_silent] = self.is_shut.each_ref().map(|is| is.load(Ordering::Relaxed));
        let bytes = self.incoming.pipe.room(End::Reading).0;
        let peer = self.peer_socket();
        let room = peer
            .as_ref()
            .and_then(|peer| peer.datagrams())
            .map(|it| it.incoming.has_room());
        let told = [
            (bytes > 0 || is_deaf, POLLIN),
            (room != Some(false), POLLOUT),
            (is_deaf, POLLRDHUP),
            (is_deaf && is_silent, POLLHUP),
            (self.error.load(Ordering::Relaxed) != 0, POLLERR),
        ];
        told.map(|(is, event)| if is { event } else { 0 })
            .iter()
            .sum()
    }
}

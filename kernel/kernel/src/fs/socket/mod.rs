//! Sockets.
//!
//! A connection has two [ways](way), each with a pipe; so has one of TCP's, since there is no
//! network but this computer's own: a port is only another kind of name. [Streams](stream) are
//! connected to one other socket; [datagrams] go to any. [Claims](ports) are the names that sockets
//! have.

mod address;
mod connect;
mod control;
mod datagrams;
mod messages;
mod names;
mod options;
mod ports;
mod stream;
mod way;

pub use address::{Address, Domain};
pub use control::{Control, DROPPED};
pub use options::{Options, PASS_CREDENTIALS, place as option_place};
pub use ports::{ABSTRACT, DATAGRAMS, STREAMS};
pub use stream::Role;
pub use way::Received;

use crate::caller::Identity;
use crate::errno::Errno;
use crate::heap;
use crate::system::{Lock, system};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use datagrams::Datagrams;
use ipc::Pipe;
use linux_raw_sys::net::{SOCK_DGRAM, SOCK_STREAM};
use metal::Metal;
use ports::Claim;
use stream::Stream;
use way::{LARGEST, Way};

/// A socket.
pub struct Socket {
    pub domain: Domain,
    /// Its type: `SOCK_…`.
    pub style: u32,
    pub options: Options,
    /// The name or the port that it has by itself, not from the socket at which it waited.
    claim: Lock<Option<Claim>>,
    body: Body,
}

enum Body {
    Stream(Stream),
    Datagrams(Datagrams),
}

impl Socket {
    /// A socket that is not connected.
    pub fn new(domain: Domain, style: u32) -> Result<Arc<Self>, Errno> {
        let body = match style {
            SOCK_DGRAM => Body::Datagrams(Datagrams::new(domain.nowhere())?),
            style => {
                let is_tcp = domain.is_internet();
                Body::Stream(Stream::new(way(style), domain.nowhere(), is_tcp)?)
            }
        };
        Ok(Self::of(domain, style, Options::new(), body))
    }

    /// Two Unix sockets that are connected to each other.
    pub fn pair(style: u32) -> Result<[Arc<Self>; 2], Errno> {
        let of = |body| Self::of(Domain::Unix, style, Options::new(), body);
        if style != SOCK_DGRAM {
            return Ok(Stream::pair(way(style))?.map(|it| of(Body::Stream(it))));
        }
        let one = || Datagrams::new(Address::Unnamed).map(|it| of(Body::Datagrams(it)));
        let [first, second] = [one()?, one()?];
        if let (Some(it), Some(other)) = (first.datagrams(), second.datagrams()) {
            it.connect(&second);
            other.connect(&first);
        }
        Ok([first, second])
    }

    fn of(domain: Domain, style: u32, options: Options, body: Body) -> Arc<Self> {
        Arc::new(Socket {
            domain,
            style,
            options,
            claim: Lock::new(None),
            body,
        })
    }

    fn stream(&self) -> Option<&Stream> {
        match &self.body {
            Body::Stream(stream) => Some(stream),
            Body::Datagrams(_) => None,
        }
    }

    fn datagrams(&self) -> Option<&Datagrams> {
        match &self.body {
            Body::Stream(_) => None,
            Body::Datagrams(it) => Some(it),
        }
    }

    /// Returns true if it listens.
    pub fn listens(&self) -> bool {
        self.stream().is_some_and(|it| it.role() == Role::Listening)
    }

    /// Its own address.
    pub fn address(&self) -> Address {
        match &self.body {
            Body::Stream(it) => it.address(),
            Body::Datagrams(it) => it.address(),
        }
    }

    fn set_address(&self, address: Address) {
        match &self.body {
            Body::Stream(it) => it.set_address(address),
            Body::Datagrams(it) => it.set_address(address),
        }
    }

    /// The address of the socket to which it is connected, if it is.
    pub fn peer(&self) -> Option<Address> {
        match &self.body {
            Body::Stream(it) => it.is_connected().then(|| it.peer()),
            Body::Datagrams(it) => it.peer(),
        }
    }

    /// Who has connected the other socket, or lets it listen.
    pub fn peer_owner(&self) -> Option<Identity> {
        self.stream().and_then(Stream::peer_owner)
    }

    /// Asks for the identity of senders, or no longer.
    pub fn ask_sender(&self, asks: bool) {
        if let Some(it) = self.stream() {
            it.ask_sender(asks);
        }
    }

    /// The bytes that a read would get now; `None` if it listens.
    pub fn available(&self) -> Option<usize> {
        (!self.listens()).then(|| self.incoming().available())
    }

    fn incoming(&self) -> &Way {
        match &self.body {
            Body::Stream(it) => it.incoming(),
            Body::Datagrams(it) => &it.incoming,
        }
    }

    /// The pipes whose changes change what it can receive, and what it can send.
    pub fn pipes(&self) -> [Arc<Pipe<Metal>>; 2] {
        let outgoing = match &self.body {
            Body::Stream(it) => it.outgoing().pipe.clone(),
            Body::Datagrams(it) => {
                let peer = it.peer_socket();
                let peer = peer.as_ref().and_then(|peer| peer.datagrams());
                peer.unwrap_or(it).incoming.pipe.clone()
            }
        };
        [self.incoming().pipe.clone(), outgoing]
    }

    /// The bytes that it can have sent, or not read, at most.
    pub fn capacities(&self) -> [usize; 2] {
        match &self.body {
            Body::Stream(it) if !it.incoming().has_packets() => {
                [it.incoming(), it.outgoing()].map(|way| way.pipe.capacity())
            }
            _ => [LARGEST; 2],
        }
    }

    /// Lets a stream hold `bytes` at least that it has not read (0), or that the other one has not
    /// (1). It holds more while memory is short, or if it does already.
    pub fn hold(&self, which: usize, bytes: usize) {
        if let Body::Stream(it) = &self.body
            && !it.incoming().has_packets()
            && !heap::is_short()
        {
            let way = [it.incoming(), it.outgoing()][which];
            // It may hold more than that at present.
            let _ = way.pipe.resize(&system().kernel, bytes.next_power_of_two());
        }
    }

    /// Shuts the way to this socket, the way from it, or both.
    pub fn shut(&self, ways: [bool; 2]) -> Result<(), Errno> {
        match &self.body {
            Body::Stream(it) => it.shut(ways),
            Body::Datagrams(it) if self.domain.is_internet() && it.peer().is_none() => {
                it.shut(ways);
                Err(Errno::NOTCONN)
            }
            Body::Datagrams(it) => {
                it.shut(ways);
                Ok(())
            }
        }
    }

    /// Called when its file is closed.
    pub fn close(&self) {
        drop(self.claim.lock().take());
        match &self.body {
            Body::Stream(it) => it.close(self.options.linger.load(Ordering::Relaxed) == 1),
            Body::Datagrams(it) => it.close(),
        }
    }

    /// Its error, which is reported once.
    pub fn take_error(&self) -> Option<Errno> {
        match &self.body {
            Body::Stream(it) => it.take_error(),
            Body::Datagrams(it) => it.take_error(),
        }
    }

    /// The events that `poll` reports.
    pub fn events(&self) -> u32 {
        match &self.body {
            Body::Stream(it) => it.events(),
            Body::Datagrams(it) => it.events(),
        }
    }
}

/// How the ways of a stream are made.
fn way(style: u32) -> fn() -> Result<Way, Errno> {
    match style {
        SOCK_STREAM => Way::of_bytes,
        _ => Way::of_packets,
    }
}

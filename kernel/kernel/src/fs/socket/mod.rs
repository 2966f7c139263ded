//! Sockets.
//!
//! A connection has two [ways](way), each with a pipe; so has one of TCP's, since there is no
//! network but this computer's own: a port is only another kind of name. [Streams](stream) are
//! connected to one other socket; [datagrams] go to any. [Claims](ports) are the names that sockets
//! have.

mod address;
mod control;
mod datagrams;
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

use super::transfer::Reading;
use super::{Name, Source, Target, caller, unready};
use crate::caller::Identity;
use crate::errno::Errno;
use crate::system::{Lock, system};
use address::{refuse_foreign, route};
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::Ordering;
use datagrams::Datagrams;
use ipc::Pipe;
use linux_raw_sys::net::{SOCK_DGRAM, SOCK_STREAM};
use metal::Metal;
use options::ONLY_V6;
use ports::{Claim, claim_name, claim_port};
use stream::Stream;
use way::{LARGEST, Packet, Way};

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

/// Ports below this one are root's.
const RESERVED: u16 = 1024;
/// The most bytes of a datagram with a port.
const LARGEST_UDP: usize = 65_507;

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

    /// Gives a Unix socket a path, which `take` puts into the file system.
    pub fn bind_path(
        &self,
        name: Name,
        take: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _claim = self.claim.lock();
        if !self.address().is_none() {
            return Err(Errno::INVAL);
        }
        take()?;
        self.set_address(Address::Unix(name));
        Ok(())
    }

    /// Gives a Unix socket an abstract name; one that nobody has, if there is none.
    pub fn bind_name(self: &Arc<Self>, name: Option<Name>) -> Result<(), Errno> {
        let mut claim = self.claim.lock();
        if !self.address().is_none() {
            // A socket with a name keeps it.
            return name.map_or(Ok(()), |_| Err(Errno::INVAL));
        }
        let (name, taken) = match name {
            Some(name) => {
                let taken = claim_name(self, &name)?;
                (name, taken)
            }
            None => (0..1_u32 << 20)
                .find_map(|number| {
                    let name = alloc::format!("\0{number:05x}").into_bytes();
                    let taken = claim_name(self, &name).ok()?;
                    Some((name, taken))
                })
                .ok_or(Errno::NOSPC)?,
        };
        *claim = Some(taken);
        self.set_address(Address::Unix(name));
        Ok(())
    }

    /// Gives it a port, any free one for port 0.
    pub fn bind_port(self: &Arc<Self>, at: SocketAddr) -> Result<(), Errno> {
        refuse_foreign(at.ip())?;
        if (1..RESERVED).contains(&at.port()) && !caller().is_root() {
            return Err(Errno::ACCES);
        }
        let mut claim = self.claim.lock();
        if claim.is_some() {
            return Err(Errno::INVAL);
        }
        let (at, taken) = claim_port(self, at)?;
        *claim = Some(taken);
        self.set_address(Address::Internet(at));
        Ok(())
    }

    /// Gives it a port, unless it has one. It gets the number `ip` if it has any.
    fn have_port(self: &Arc<Self>, ip: IpAddr) -> Result<SocketAddr, Errno> {
        let any: IpAddr = match self.domain {
            Domain::Six => Ipv6Addr::UNSPECIFIED.into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        };
        let bound = self.bind_port((any, 0).into());
        match bound {
            Ok(()) | Err(Errno::INVAL) => {}
            Err(_) => return Err(Errno::ADDRNOTAVAIL),
        }
        let own = self.address().internet().ok_or(Errno::INVAL)?;
        match own.ip().is_unspecified() {
            true => Ok((ip, own.port()).into()),
            false => Ok(own),
        }
    }

    /// Lets others connect to it. One may wait to be accepted if at most `most` others do.
    pub fn listen(self: &Arc<Self>, most: usize) -> Result<(), Errno> {
        let stream = self.stream().ok_or(Errno::OPNOTSUPP)?;
        let Some(own) = self.address().internet() else {
            return match self.address() {
                Address::Unnamed => Err(Errno::INVAL),
                _ => stream.listen(most),
            };
        };
        self.have_port(own.ip())?;
        let own = self.address().internet().ok_or(Errno::INVAL)?;
        let rival = |other: &Socket| !core::ptr::eq(other, &**self) && other.listens();
        let shares = self.options.has(options::REUSE_PORT);
        if !self.listens() && !shares && ports::find(self, own, rival).is_some() {
            return Err(Errno::ADDRINUSE);
        }
        stream.listen(most)
    }

    /// Connects it to a Unix socket.
    pub fn connect(
        &self,
        to: &Arc<Socket>,
        blocks: bool,
        waits: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        if self.style != to.style {
            return Err(Errno::PROTOTYPE);
        }
        match (&self.body, &to.body) {
            (Body::Stream(it), Body::Stream(to)) => match it.connect(to, waits)? {
                true => Ok(()),
                false => Err(unready(blocks)),
            },
            (Body::Datagrams(it), Body::Datagrams(other)) => {
                if other.is_closed() {
                    return Err(Errno::CONNREFUSED);
                }
                it.connect(to);
                Ok(())
            }
            _ => Err(Errno::PROTOTYPE),
        }
    }

    /// Connects it to a port.
    pub fn connect_port(
        self: &Arc<Self>,
        to: SocketAddr,
        blocks: bool,
        waits: impl Fn() -> bool,
    ) -> Result<(), Errno> {
        let stream = match &self.body {
            Body::Stream(stream) => stream,
            Body::Datagrams(it) => {
                let (to, own) = self.reach(to)?;
                self.set_address(Address::Internet(self.have_port(own)?));
                it.connect_port(to);
                return Ok(());
            }
        };
        match stream.role() {
            Role::New => {
                let (to, own) = self.reach(to)?;
                self.set_address(Address::Internet(self.have_port(own)?));
                let server = ports::find(self, to, Socket::listens);
                let server = server.as_ref().and_then(|it| it.stream());
                stream.start(server, Address::Internet(to))?;
                if !blocks {
                    return Err(Errno::INPROGRESS);
                }
            }
            Role::Listening => return Err(Errno::ISCONN),
            _ => {}
        }
        let finished = stream.finish(waits);
        finished.ok_or(if blocks { Errno::INTR } else { Errno::ALREADY })?
    }

    /// Takes the peer of a socket of datagrams away.
    pub fn disconnect(&self) -> Result<(), Errno> {
        self.datagrams().ok_or(Errno::OPNOTSUPP)?.disconnect();
        Ok(())
    }

    /// The place that an address means for this socket, and the number from which it gets there.
    fn reach(&self, to: SocketAddr) -> Result<(SocketAddr, IpAddr), Errno> {
        let is_foreign = match self.domain {
            Domain::Six => to.is_ipv4() && self.options.has(ONLY_V6),
            _ => to.is_ipv6(),
        };
        if is_foreign {
            return Err(Errno::NETUNREACH);
        }
        route(to)
    }

    /// Takes the socket that has waited longest to be accepted; `None` if it would have to wait.
    pub fn accept(&self, waits: impl Fn() -> bool) -> Result<Option<Arc<Self>>, Errno> {
        let stream = self.stream().ok_or(Errno::OPNOTSUPP)?;
        let accepted = stream.accept(waits)?;
        let (domain, style, options) = (self.domain, self.style, &self.options);
        Ok(accepted.map(|it| Self::of(domain, style, options.inherited(), Body::Stream(it))))
    }

    /// Sends bytes to the connected socket, or a packet. It waits while `waits` returns true.
    pub fn send(
        self: &Arc<Self>,
        source: &mut dyn Source,
        control: Control,
        blocks: bool,
        waits: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        let stream = match &self.body {
            Body::Stream(stream) => stream,
            Body::Datagrams(it) => {
                let peer = it.peer();
                return match peer.ok_or(Errno::NOTCONN)? {
                    Address::Internet(to) => self.send_to_port(to, source),
                    _ => {
                        let to = it.peer_socket().ok_or(Errno::CONNREFUSED)?;
                        self.send_to(&to, source, control, blocks, waits)
                    }
                };
            }
        };
        stream.refuse_sending()?;
        let mut control = control;
        if control.sender.is_none() && stream.tells_sender() {
            control.sender = Some(system().kernel.caller.identity());
        }
        let most = source.most();
        let sent = if stream.outgoing().has_packets() {
            let packet = Packet::new(source, Address::Unnamed, control)?;
            match stream.outgoing().push(packet, waits)? {
                Some(_) => Err(unready(blocks)),
                None => Ok(most),
            }
        } else {
            stream.outgoing().send(source, control, waits)
        };
        match sent {
            Err(Errno::PIPE) => stream.broken(most),
            Err(Errno::AGAIN) => Err(unready(blocks)),
            sent => sent,
        }
    }

    /// Sends a datagram to a Unix socket.
    pub fn send_to(
        self: &Arc<Self>,
        to: &Arc<Socket>,
        source: &mut dyn Source,
        mut control: Control,
        blocks: bool,
        waits: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        let it = self.datagrams().ok_or(Errno::OPNOTSUPP)?;
        if it.is_silent() {
            return Err(Errno::PIPE);
        }
        let other = to.datagrams().ok_or(Errno::PROTOTYPE)?;
        if !other.takes_from(self) {
            return Err(Errno::PERM);
        }
        let asks = [self, to].map(|one| one.options.has(PASS_CREDENTIALS));
        if control.sender.is_none() && asks != [false; 2] {
            control.sender = Some(system().kernel.caller.identity());
        }
        let count = source.most();
        let packet = Packet::new(source, self.address(), control)?;
        match other.take(packet, waits)? {
            Some(_) => Err(unready(blocks)),
            None => Ok(count),
        }
    }

    /// Sends a datagram to a port. If nobody has it, the next call learns that; if there is no room
    /// for it, nobody does.
    pub fn send_to_port(
        self: &Arc<Self>,
        to: SocketAddr,
        source: &mut dyn Source,
    ) -> Result<usize, Errno> {
        let it = self.datagrams().ok_or(Errno::OPNOTSUPP)?;
        if it.is_silent() {
            return Err(Errno::PIPE);
        }
        if to.port() == 0 {
            return Err(Errno::INVAL);
        }
        if let Some(error) = it.take_error() {
            return Err(error);
        }
        let (to, own) = self.reach(to)?;
        let from = self.have_port(own)?;
        let count = source.most();
        if count > LARGEST_UDP {
            return Err(Errno::MSGSIZE);
        }
        let packet = Packet::new(source, Address::Internet(from), Control::default())?;
        let takes = |one: &Socket| one.datagrams().is_some_and(|it| it.takes_from_port(from));
        let receiver = ports::find(self, to, takes);
        match receiver.as_ref().and_then(|one| one.datagrams()) {
            // A datagram for which there is no room is lost.
            Some(receiver) => drop(receiver.take(packet, || false)),
            None if it.peer().is_some() => it.fail(Errno::CONNREFUSED),
            None => {}
        }
        Ok(count)
    }

    /// Receives bytes or a packet; 0 at the end. It waits while `how` says so.
    pub fn receive(
        &self,
        target: &mut dyn Target,
        how: &Reading,
        blocks: bool,
        received: &mut Received,
    ) -> Result<usize, Errno> {
        let count = match &self.body {
            Body::Stream(it) => {
                it.refuse_receiving()?;
                it.incoming().receive(target, how, received)?
            }
            Body::Datagrams(it) => {
                if let Some(error) = it.take_error() {
                    return Err(error);
                }
                it.incoming.receive(target, how, received)?
            }
        };
        match count {
            None => Err(unready(blocks)),
            Some(0) if target.most() > 0 && received.from.is_none() => {
                self.take_error().map_or(Ok(0), Err)
            }
            Some(count) => Ok(count),
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
            && !crate::heap::is_short()
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

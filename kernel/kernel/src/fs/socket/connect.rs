//! Connecting sockets, listening and accepting.

use super::address::route;
use super::options::{ONLY_V6, REUSE_PORT};
use super::{Address, Body, Domain, Role, Socket, ports};
use crate::errno::Errno;
use crate::fs::unready;
use alloc::sync::Arc;
use core::net::{IpAddr, SocketAddr};
use core::ptr;

impl Socket {
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
        let rival = |other: &Socket| !ptr::eq(other, &**self) && other.listens();
        let shares = self.options.has(REUSE_PORT);
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
    pub(super) fn reach(&self, to: SocketAddr) -> Result<(SocketAddr, IpAddr), Errno> {
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
}

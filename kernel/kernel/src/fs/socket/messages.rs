//! Sending and receiving.

use super::options::PASS_CREDENTIALS;
use super::way::Packet;
use super::{Address, Body, Control, Received, Socket, ports};
use crate::errno::Errno;
use crate::fs::transfer::Reading;
use crate::fs::{Source, Target, unready};
use crate::system::system;
use alloc::sync::Arc;
use core::net::SocketAddr;

/// The most bytes of a datagram with a port.
const LARGEST_UDP: usize = 65_507;

impl Socket {
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
}

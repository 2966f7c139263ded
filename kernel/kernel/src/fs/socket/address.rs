//! Addresses of sockets.

use crate::errno::Errno;
use crate::fs::Name;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The domain of a socket: the form of its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domain {
    /// Names in the file system, and abstract names.
    Unix,
    /// The Internet's addresses of version 4. There is one network, this computer's own.
    Four,
    /// The Internet's addresses of version 6, which include those of version 4.
    Six,
}

/// The address of a socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// None.
    Unnamed,
    /// A path and a 0, or a 0 and any bytes.
    Unix(Name),
    /// A number and a port. A number of version 4 has that form, whatever the socket's domain.
    Internet(SocketAddr),
}

impl Address {
    /// Returns true if it is none.
    pub fn is_none(&self) -> bool {
        *self == Address::Unnamed
    }

    /// The number and the port, if it has them.
    pub fn internet(&self) -> Option<SocketAddr> {
        match self {
            Address::Internet(at) => Some(*at),
            _ => None,
        }
    }
}

impl Domain {
    /// The address of new sockets.
    pub fn nowhere(self) -> Address {
        match self {
            Domain::Unix => Address::Unnamed,
            Domain::Four => Address::Internet((Ipv4Addr::UNSPECIFIED, 0).into()),
            Domain::Six => Address::Internet((Ipv6Addr::UNSPECIFIED, 0).into()),
        }
    }

    /// Returns true if it is one of the Internet's.
    pub fn is_internet(self) -> bool {
        self != Domain::Unix
    }
}

/// Fails if a socket cannot have the number: only the loopback interface exists.
pub fn refuse_foreign(ip: IpAddr) -> Result<(), Errno> {
    if ip.is_loopback() || ip.is_unspecified() {
        Ok(())
    } else {
        Err(Errno::ADDRNOTAVAIL)
    }
}

/// The place that an address means, and the number from which a socket reaches it.
///
/// # Errors
/// If no interface leads there.
pub fn route(to: SocketAddr) -> Result<(SocketAddr, IpAddr), Errno> {
    let own: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let ip = to.ip();
    match ip {
        _ if ip.is_unspecified() => Ok(((own, to.port()).into(), own)),
        _ if ip.is_loopback() => Ok(((ip, to.port()).into(), own)),
        _ => Err(Errno::NETUNREACH),
    }
}

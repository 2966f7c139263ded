//! Options of sockets that are kept as numbers.
//!
//! Options of packets have no effect, since there are no packets: bytes are at the other socket as
//! soon as they are sent, and no connection is ever silent because a packet was lost.

use super::Domain;
use crate::errno::Errno;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use linux_raw_sys::net::*;

/// An option that is kept.
struct Known {
    level: u32,
    name: u32,
    /// Its first value.
    first: u32,
    /// The largest value; any larger one means that one if it is 1.
    most: u32,
}

const fn kept(level: u32, name: u32, first: u32, most: u32) -> Known {
    Known {
        level,
        name,
        first,
        most,
    }
}

const IP: u32 = IPPROTO_IP as u32;
const TCP: u32 = IPPROTO_TCP as u32;
const SIX: u32 = IPPROTO_IPV6 as u32;

/// The places of those that the kernel reads.
pub const REUSE_ADDRESS: usize = 0;
pub const REUSE_PORT: usize = 1;
pub const ONLY_V6: usize = 2;
pub const PASS_CREDENTIALS: usize = 3;

const COUNT: usize = 21;

const KNOWN: [Known; COUNT] = [
    kept(SOL_SOCKET, SO_REUSEADDR, 0, 1),
    kept(SOL_SOCKET, SO_REUSEPORT, 0, 1),
    kept(SIX, IPV6_V6ONLY, 0, 1),
    kept(SOL_SOCKET, SO_PASSCRED, 0, 1),
    kept(SOL_SOCKET, SO_KEEPALIVE, 0, 1),
    kept(SOL_SOCKET, SO_BROADCAST, 0, 1),
    kept(SOL_SOCKET, SO_DONTROUTE, 0, 1),
    kept(SOL_SOCKET, SO_PRIORITY, 0, 6),
    kept(TCP, TCP_NODELAY, 0, 1),
    kept(TCP, TCP_CORK, 0, 1),
    kept(TCP, TCP_KEEPIDLE, 7200, 32767),
    kept(TCP, TCP_KEEPINTVL, 75, 32767),
    kept(TCP, TCP_KEEPCNT, 9, 127),
    kept(TCP, TCP_SYNCNT, 6, 127),
    kept(TCP, TCP_QUICKACK, 1, 1),
    kept(TCP, TCP_USER_TIMEOUT, 0, i32::MAX as u32),
    kept(IP, IP_TOS, 0, 255),
    kept(IP, IP_TTL, 64, 255),
    kept(SIX, IPV6_TCLASS, 0, 255),
    kept(SIX, IPV6_UNICAST_HOPS, 64, 255),
    kept(IP, IP_MTU_DISCOVER, 1, 5),
];

/// The options of a socket.
pub struct Options {
    values: [AtomicU32; COUNT],
    /// How long closing waits for bytes to be read, in seconds plus 1; 0 if it does not. Here a
    /// wait has nothing to wait for, but 0 seconds throw the bytes away.
    pub linger: AtomicU32,
    /// How long receiving and sending wait, in nanoseconds; 0 for no limit.
    pub limits: [AtomicU64; 2],
}

impl Options {
    /// Those of a new socket.
    pub fn new() -> Self {
        Options {
            values: core::array::from_fn(|place| AtomicU32::new(KNOWN[place].first)),
            linger: AtomicU32::new(0),
            limits: Default::default(),
        }
    }

    /// The same options, for the socket that a listening one accepts.
    pub fn inherited(&self) -> Self {
        let of = |value: &AtomicU32| AtomicU32::new(value.load(Ordering::Relaxed));
        Options {
            values: self.values.each_ref().map(of),
            linger: of(&self.linger),
            limits: Default::default(),
        }
    }

    /// Returns true if the option in this place is not 0.
    pub fn has(&self, place: usize) -> bool {
        self.values[place].load(Ordering::Relaxed) != 0
    }

    /// An option's value.
    pub fn get(&self, place: usize) -> u32 {
        self.values[place].load(Ordering::Relaxed)
    }

    /// Changes an option.
    pub fn set(&self, place: usize, value: i32) -> Result<(), Errno> {
        let Known { first, most, .. } = KNOWN[place];
        let value = match (most, value) {
            (1, value) => u32::from(value != 0),
            // The usual value.
            (255, -1) => first,
            (_, value) => u32::try_from(value).map_err(|_| Errno::INVAL)?,
        };
        if value > most {
            return Err(Errno::INVAL);
        }
        self.values[place].store(value, Ordering::Relaxed);
        Ok(())
    }
}

/// The place of an option.
///
/// # Errors
/// If such sockets do not have it.
pub fn place(domain: Domain, style: u32, level: u32, name: u32) -> Result<usize, Errno> {
    let has_level = match level {
        SOL_SOCKET => true,
        IP => domain.is_internet(),
        SIX => domain == Domain::Six,
        TCP => domain.is_internet() && style == SOCK_STREAM,
        _ => false,
    };
    if !has_level {
        return Err(match domain {
            Domain::Unix => Errno::OPNOTSUPP,
            _ => Errno::NOPROTOOPT,
        });
    }
    let is = |known: &Known| known.level == level && known.name == name;
    KNOWN.iter().position(is).ok_or(Errno::NOPROTOOPT)
}

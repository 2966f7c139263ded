//! The ports of the Internet's sockets, and abstract names: who has which.

use super::Socket;
use super::options::{ONLY_V6, REUSE_ADDRESS, REUSE_PORT};
use crate::errno::Errno;
use crate::fs::Name;
use crate::single::Single;
use crate::system::Lock;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::ops::Range;
use linux_raw_sys::net::SOCK_STREAM;

/// The ports that sockets get which ask for none in particular.
const HANDED_OUT: Range<u16> = 32768..61000;

/// The sockets with abstract names.
pub static ABSTRACT: Single<Lock<BTreeMap<Name, Weak<Socket>>>> = Single::new();

/// The ports of streams.
pub static STREAMS: Single<Lock<Ports>> = Single::new();

/// The ports of datagrams.
pub static DATAGRAMS: Single<Lock<Ports>> = Single::new();

/// The ports of one protocol.
#[derive(Default)]
pub struct Ports {
    users: BTreeMap<u16, Vec<User>>,
    /// How many ports were handed out.
    handed_out: u16,
}

/// A socket with a port.
struct User {
    ip: IpAddr,
    socket: Weak<Socket>,
}

/// A name or a port that a socket has, and gives up when this is dropped.
pub enum Claim {
    Name(Name),
    Port(u16, Weak<Socket>, &'static Lock<Ports>),
}

impl Drop for Claim {
    fn drop(&mut self) {
        match self {
            Claim::Name(name) => drop(ABSTRACT.lock().remove(name)),
            Claim::Port(port, socket, ports) => {
                let mut ports = ports.lock();
                let Entry::Occupied(mut users) = ports.users.entry(*port) else {
                    return;
                };
                users.get_mut().retain(|one| !one.socket.ptr_eq(socket));
                if users.get().is_empty() {
                    users.remove();
                }
            }
        }
    }
}

/// Gives a socket an abstract name.
pub fn claim_name(socket: &Arc<Socket>, name: &Name) -> Result<Claim, Errno> {
    match ABSTRACT.lock().entry(name.clone()) {
        Entry::Occupied(_) => return Err(Errno::ADDRINUSE),
        Entry::Vacant(place) => place.insert(Arc::downgrade(socket)),
    };
    Ok(Claim::Name(name.clone()))
}

/// Gives a socket a port, or any free one for port 0.
pub fn claim_port(socket: &Arc<Socket>, at: SocketAddr) -> Result<(SocketAddr, Claim), Errno> {
    let all = ports(socket);
    let mut ports = all.lock();
    let port = match at.port() {
        0 => ports.free().ok_or(Errno::ADDRINUSE)?,
        port => port,
    };
    let users = ports.users.entry(port).or_default();
    let is_refused = |user: &User| {
        let other = user.socket.upgrade();
        other.is_some_and(|other| {
            overlap(socket, at.ip(), &other, user.ip) && !share(socket, &other)
        })
    };
    if users.iter().any(is_refused) {
        return Err(Errno::ADDRINUSE);
    }
    users.push(User {
        ip: at.ip(),
        socket: Arc::downgrade(socket),
    });
    let claim = Claim::Port(port, Arc::downgrade(socket), all);
    Ok(((at.ip(), port).into(), claim))
}

/// The socket of `like`'s protocol that serves `at`, of those that `suit`: the one with that
/// number before those with any.
pub fn find(like: &Socket, at: SocketAddr, suit: impl Fn(&Socket) -> bool) -> Option<Arc<Socket>> {
    let ports = ports(like).lock();
    let users = ports.users.get(&at.port())?.iter();
    let serving = users.filter_map(|user| {
        let socket = user.socket.upgrade()?;
        let rank = match user.ip {
            ip if ip == at.ip() => 2,
            ip if ip.is_unspecified() && serves(&socket, ip, at.ip()) => u8::from(ip.is_ipv4()),
            _ => return None,
        };
        suit(&socket).then_some((rank, socket))
    });
    serving
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, socket)| socket)
}

fn ports(socket: &Socket) -> &'static Lock<Ports> {
    match socket.style {
        SOCK_STREAM => &STREAMS,
        _ => &DATAGRAMS,
    }
}

/// Returns true if a socket with the number `ip`, which may mean any, serves `at`.
fn serves(socket: &Socket, ip: IpAddr, at: IpAddr) -> bool {
    let is_any = ip.is_unspecified();
    ip == at
        || is_any && ip.is_ipv4() == at.is_ipv4()
        || is_any && ip.is_ipv6() && !socket.options.has(ONLY_V6)
}

fn overlap(socket: &Socket, ip: IpAddr, other: &Socket, at: IpAddr) -> bool {
    serves(socket, ip, at) || serves(other, at, ip)
}

/// Returns true if both sockets allow the other to have the same port.
fn share(one: &Socket, other: &Socket) -> bool {
    let both = |option| one.options.has(option) && other.options.has(option);
    both(REUSE_PORT) || both(REUSE_ADDRESS) && !one.listens() && !other.listens()
}

impl Ports {
    /// A port that no socket has.
    fn free(&mut self) -> Option<u16> {
        let count = HANDED_OUT.end - HANDED_OUT.start;
        (0..count).find_map(|_| {
            let port = HANDED_OUT.start + self.handed_out;
            self.handed_out = (self.handed_out + 1) % count;
            (!self.users.contains_key(&port)).then_some(port)
        })
    }
}

//! Sockets.

mod address;
mod control;
mod message;
mod options;

pub use message::{recvfrom, recvmmsg, recvmsg, sendmmsg, sendmsg, sendto};
pub use options::{getsockopt, setsockopt};

use super::file::add_two;
use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{
    ABSTRACT, Address, Domain, Inode, Kind, Name, Open, OpenFile, Place, Socket, find, unready,
};
use crate::process::Thread;
use crate::users::WRITE;
use address::{Given, read_address, write_address};
use alloc::sync::{Arc, Weak};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use linux_raw_sys::net::*;

/// The bits of a type that are not flags.
const TYPE: u32 = 0xf;
/// The numbers from which on there are no domains and no types.
const DOMAINS: u32 = 46;
const TYPES: u32 = 11;

const TCP: u32 = IPPROTO_TCP as u32;
const UDP: u32 = IPPROTO_UDP as u32;

/// The open file of a new socket.
fn open(socket: Arc<Socket>, flags: u32) -> Arc<OpenFile> {
    let inode = Inode::new(Kind::Socket(socket), 0o777);
    OpenFile::new(Open::Inode(inode), O_RDWR | flags & O_NONBLOCK)
}

pub fn socket(thread: &mut Thread, [domain, kind, protocol, ..]: Arguments) -> Answer {
    let (domain, style, flags) = supported(domain, kind, protocol)?;
    let socket = Socket::new(domain, style)?;
    thread.add_file(open(socket, flags), flags & O_CLOEXEC != 0)
}

pub fn socketpair(thread: &mut Thread, [domain, kind, protocol, to, ..]: Arguments) -> Answer {
    let (domain, style, flags) = supported(domain, kind, protocol)?;
    if domain != Domain::Unix {
        return Err(Errno::OPNOTSUPP);
    }
    let files = Socket::pair(style)?.map(|socket| open(socket, flags));
    add_two(thread, files, flags, to)
}

/// The domain, the type and the flags of a new socket.
///
/// # Errors
/// If there are no such sockets here.
fn supported(domain: usize, kind: usize, protocol: usize) -> Result<(Domain, u32, u32), Errno> {
    let (style, flags) = (kind as u32 & TYPE, kind as u32 & !TYPE);
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let of = |domain| Ok((domain, style, flags));
    match (domain as u32, style, protocol as u32) {
        (DOMAINS.., ..) => Err(Errno::AFNOSUPPORT),
        (_, TYPES.., _) => Err(Errno::INVAL),
        (AF_UNIX, SOCK_STREAM | SOCK_DGRAM | SOCK_SEQPACKET, 0 | AF_UNIX) => of(Domain::Unix),
        // Linux has had no raw ones since its first versions.
        (AF_UNIX, SOCK_RAW, 0 | AF_UNIX) => Ok((Domain::Unix, SOCK_DGRAM, flags)),
        (AF_UNIX, _, 0 | AF_UNIX) => Err(Errno::SOCKTNOSUPPORT),
        (AF_UNIX, ..) => Err(Errno::PROTONOSUPPORT),
        (AF_INET, SOCK_STREAM, 0 | TCP) | (AF_INET, SOCK_DGRAM, 0 | UDP) => of(Domain::Four),
        (AF_INET6, SOCK_STREAM, 0 | TCP) | (AF_INET6, SOCK_DGRAM, 0 | UDP) => of(Domain::Six),
        (AF_INET | AF_INET6, SOCK_STREAM | SOCK_DGRAM, _) => Err(Errno::PROTONOSUPPORT),
        (AF_INET | AF_INET6, ..) => Err(Errno::SOCKTNOSUPPORT),
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// The open file that a descriptor leads to, if it is a socket.
fn file(thread: &Thread, fd: usize) -> Result<Arc<OpenFile>, Errno> {
    let file = thread.file(fd)?;
    file.socket().ok_or(Errno::NOTSOCK)?;
    Ok(file)
}

/// Calls `work` with the open file that a descriptor leads to, and its socket.
fn with<R>(
    thread: &Thread,
    fd: usize,
    work: impl FnOnce(&OpenFile, &Arc<Socket>) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let file = thread.file(fd)?;
    work(&file, file.socket().ok_or(Errno::NOTSOCK)?)
}

pub fn bind(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        match read_address(thread, socket.domain, at, size)? {
            Given::Any => socket.bind_name(None)?,
            Given::Nowhere => return Err(Errno::INVAL),
            Given::Address(Address::Internet(at)) => socket.bind_port(at)?,
            Given::Address(Address::Unix(name)) if name.first() == Some(&0) => {
                socket.bind_name(Some(name))?;
            }
            Given::Address(Address::Unix(name)) => bind_path(thread, socket, name)?,
            Given::Address(Address::Unnamed) => return Err(Errno::INVAL),
        }
        Ok(0)
    })
}

fn bind_path(thread: &Thread, socket: &Arc<Socket>, mut name: Name) -> Result<(), Errno> {
    let place = name.clone();
    name.push(0);
    let bound = Arc::downgrade(socket);
    socket.bind_path(name, || {
        let mode = thread.permissions(0o777);
        let path = thread.path_at(HERE, &place)?;
        let added = Place::of(&path)?.add(false, || Ok(Inode::new(Kind::Bound(bound), mode)));
        match added {
            Err(Errno::EXIST) => Err(Errno::ADDRINUSE),
            added => added.map(drop),
        }
    })
}

/// The most sockets that wait to be accepted, besides one.
const MOST_WAITING: usize = 4095;

pub fn listen(thread: &mut Thread, [fd, most, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        socket.listen((most as u32 as usize).min(MOST_WAITING))?;
        Ok(0)
    })
}

pub fn connect(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    with(thread, fd, |file, socket| {
        let blocks = file.is_blocking();
        let waits = || file.waits();
        match read_address(thread, socket.domain, at, size)? {
            Given::Nowhere => socket.disconnect()?,
            Given::Address(Address::Internet(at)) => {
                let connected = file.limited(1, || socket.connect_port(at, blocks, waits));
                connected.map_err(|error| match error {
                    // The time is over.
                    Errno::AGAIN if blocks => Errno::INPROGRESS,
                    error => error,
                })?;
            }
            Given::Address(Address::Unix(name)) => {
                let to = named(thread, &name)?;
                file.limited(1, || socket.connect(&to, blocks, waits))?;
            }
            Given::Any | Given::Address(Address::Unnamed) => return Err(Errno::INVAL),
        }
        Ok(0)
    })
}

/// The Unix socket with this name.
fn named(thread: &Thread, name: &[u8]) -> Result<Arc<Socket>, Errno> {
    let found = if name.first() == Some(&0) {
        ABSTRACT.lock().get(name).and_then(Weak::upgrade)
    } else {
        let inode = find(&thread.path_at(HERE, name)?, true)?;
        inode.refuse(WRITE)?;
        match &inode.kind {
            Kind::Bound(socket) => socket.upgrade(),
            _ => None,
        }
    };
    found.ok_or(Errno::CONNREFUSED)
}

pub fn accept(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    accept4(thread, [fd, at, size, 0, 0, 0])
}

pub fn accept4(thread: &mut Thread, [fd, at, size, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let accepted = with(thread, fd, |file, socket| {
        let accepted = file.limited(0, || socket.accept(|| file.waits()))?;
        accepted.ok_or_else(|| unready(file.is_blocking()))
    })?;
    let (domain, peer) = (accepted.domain, accepted.peer());
    // If this fails, the socket is closed.
    let accepted = open(accepted, flags);
    if at != 0 {
        write_address(thread, domain, &peer.unwrap_or(Address::Unnamed), at, size)?;
    }
    thread.add_file(accepted, flags & O_CLOEXEC != 0)
}

pub fn shutdown(thread: &mut Thread, [fd, how, ..]: Arguments) -> Answer {
    let ways = match how as u32 {
        SHUT_RD => [true, false],
        SHUT_WR => [false, true],
        SHUT_RDWR => [true, true],
        _ => return file(thread, fd).and(Err(Errno::INVAL)),
    };
    with(thread, fd, |_, socket| socket.shut(ways))?;
    Ok(0)
}

pub fn getsockname(thread: &mut Thread, [fd, to, size, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        write_address(thread, socket.domain, &socket.address(), to, size)
    })
}

pub fn getpeername(thread: &mut Thread, [fd, to, size, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        let peer = socket.peer().ok_or(Errno::NOTCONN)?;
        write_address(thread, socket.domain, &peer, to, size)
    })
}

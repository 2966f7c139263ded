//! Sockets.

use super::file::{add_two, signal_if_broken};
use super::names::HERE;
use super::transfer::{Part, Parts, vector};
use super::{Answer, Arguments, Errno};
use crate::fs::{ABSTRACT, Inode, Kind, Name, Open, OpenFile, Place, Socket, find, unready};
use crate::process::Thread;
use alloc::collections::btree_map::Entry;
use alloc::sync::{Arc, Weak};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use linux_raw_sys::net::*;

/// The bits of a type that are not flags.
const TYPE: u32 = 0xf;
/// The numbers from which on there are no domains and no types.
const DOMAINS: u32 = 46;
const TYPES: u32 = 11;

/// The flags of sending and receiving that are known. The others of Linux, such as those for
/// urgent bytes or to look at bytes without taking them, are refused.
const SEND: u32 = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR;
const RECEIVE: u32 = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_CMSG_CLOEXEC;

/// The open file of a new socket.
fn open(socket: Socket, flags: u32) -> Arc<OpenFile> {
    let inode = Inode::new(Kind::Socket(socket), 0o777);
    OpenFile::new(Open::Inode(inode), O_RDWR | flags & O_NONBLOCK)
}

pub fn socket(thread: &mut Thread, [domain, kind, protocol, ..]: Arguments) -> Answer {
    let flags = supported(domain, kind, protocol)?;
    thread.add_file(open(Socket::new()?, flags), flags & O_CLOEXEC != 0)
}

pub fn socketpair(thread: &mut Thread, [domain, kind, protocol, to, ..]: Arguments) -> Answer {
    let flags = supported(domain, kind, protocol)?;
    let files = Socket::pair()?.map(|socket| open(socket, flags));
    add_two(thread, files, flags, to)
}

/// The flags of a new socket.
///
/// # Errors
/// If there are no such sockets here.
fn supported(domain: usize, kind: usize, protocol: usize) -> Result<u32, Errno> {
    let flags = kind as u32 & !TYPE;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    match (domain as u32, kind as u32 & TYPE, protocol as u32) {
        (DOMAINS.., ..) => Err(Errno::AFNOSUPPORT),
        (_, TYPES.., _) => Err(Errno::INVAL),
        (AF_UNIX, SOCK_STREAM, 0 | AF_UNIX) => Ok(flags),
        (AF_UNIX, _, 0 | AF_UNIX) => Err(Errno::SOCKTNOSUPPORT),
        (AF_UNIX, ..) => Err(Errno::PROTONOSUPPORT),
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// Bytes of an address before the path, and at most.
const FAMILY: usize = 2;
const ADDRESS: usize = 110;

/// Reads an address: a path without its end, or an abstract name, which begins with a 0.
fn read_address(thread: &Thread, at: usize, size: usize) -> Result<Name, Errno> {
    let size = size as u32 as usize;
    // An address without a name is not supported.
    if !(FAMILY + 1..=ADDRESS).contains(&size) {
        return Err(Errno::INVAL);
    }
    let mut bytes = [0; ADDRESS];
    thread.read_bytes(at, &mut bytes[..size])?;
    let (family, name) = bytes[..size].split_at(FAMILY);
    if family != (AF_UNIX as u16).to_le_bytes() {
        return Err(Errno::INVAL);
    }
    let end = match name {
        [0, ..] => name.len(),
        _ => name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len()),
    };
    Ok(name[..end].to_vec())
}

/// Writes as much of an address as there is room for, and its size.
fn write_address(thread: &Thread, address: &[u8], to: usize, size: usize) -> Answer {
    let room: u32 = thread.read(size)?;
    if (room as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let mut bytes = (AF_UNIX as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(address);
    let count = bytes.len().min(room as usize);
    thread.write_bytes(to, &bytes[..count])?;
    thread.write(size, bytes.len() as u32)?;
    Ok(0)
}

pub fn bind(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let mut name = read_address(thread, at, size)?;
    let inode = Arc::downgrade(file.inode());
    if name.first() == Some(&0) {
        socket.bind(name, |name| match ABSTRACT.lock().entry(name.clone()) {
            Entry::Occupied(_) => Err(Errno::ADDRINUSE),
            Entry::Vacant(place) => {
                place.insert(inode);
                Ok(())
            }
        })?;
        return Ok(0);
    }
    let place = name.clone();
    name.push(0);
    socket.bind(name, |_| {
        let mode = thread.permissions(0o777);
        let path = thread.path_at(HERE, &place)?;
        let added = Place::of(&path)?.add(false, || Ok(Inode::new(Kind::Bound(inode), mode)));
        match added {
            Err(Errno::EXIST) => Err(Errno::ADDRINUSE),
            added => added.map(drop),
        }
    })?;
    Ok(0)
}

/// The most sockets that wait to be accepted.
const MOST_WAITING: usize = 4096;

pub fn listen(thread: &mut Thread, [fd, most, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    socket.listen((most as u32 as usize).min(MOST_WAITING))?;
    Ok(0)
}

pub fn connect(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let name = read_address(thread, at, size)?;
    let to = if name.first() == Some(&0) {
        ABSTRACT.lock().get(&name).and_then(Weak::upgrade)
    } else {
        match &find(&thread.path_at(HERE, &name)?, true)?.kind {
            Kind::Bound(inode) => inode.upgrade(),
            _ => None,
        }
    };
    let to = to.ok_or(Errno::CONNREFUSED)?;
    let Kind::Socket(to) = &to.kind else {
        return Err(Errno::CONNREFUSED);
    };
    match socket.connect(to, || file.waits())? {
        true => Ok(0),
        false => Err(unready(file.is_blocking())),
    }
}

pub fn accept(thread: &mut Thread, [fd, at, size, ..]: Arguments) -> Answer {
    accept4(thread, [fd, at, size, 0, 0, 0])
}

pub fn accept4(thread: &mut Thread, [fd, at, size, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let accepted = socket.accept(|| file.waits())?;
    let accepted = accepted.ok_or_else(|| unready(file.is_blocking()))?;
    let peer = accepted.peer();
    // If this fails, the socket is closed.
    let accepted = open(accepted, flags);
    if at != 0 {
        write_address(thread, &peer, at, size)?;
    }
    thread.add_file(accepted, flags & O_CLOEXEC != 0)
}

/// The open file that a descriptor leads to, if it is a socket.
fn file(thread: &Thread, fd: usize) -> Result<Arc<OpenFile>, Errno> {
    let file = thread.file(fd)?;
    file.socket().ok_or(Errno::NOTSOCK)?;
    Ok(file)
}

pub fn sendto(thread: &mut Thread, [fd, at, bytes, flags, address, size]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let has_address = address != 0 && size != 0;
    send(thread, &file, &[Part { at, bytes }], flags, has_address)
}

/// The words of `struct msghdr`. Some fields are narrower than their places.
type Header = [usize; 7];
const WORD: usize = size_of::<usize>();

pub fn sendmsg(thread: &mut Thread, [fd, at, flags, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let [name, size, parts, count, _, control, _]: Header = thread.read(at)?;
    let parts = vector(thread, parts, count)?;
    // Descriptors cannot be sent.
    if control != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let has_address = name != 0 && size as u32 != 0;
    send(thread, &file, &parts, flags, has_address)
}

fn send(
    thread: &Thread,
    file: &OpenFile,
    parts: &[Part],
    flags: usize,
    has_address: bool,
) -> Answer {
    let flags = flags as u32;
    if flags & !SEND != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if has_address {
        let is_connected = file.socket().is_some_and(Socket::is_connected);
        return Err(if is_connected {
            Errno::ISCONN
        } else {
            Errno::OPNOTSUPP
        });
    }
    let waits = file.is_blocking() && flags & MSG_DONTWAIT == 0;
    let sent = file.send(&mut Parts::new(thread, parts)?, waits);
    if flags & MSG_NOSIGNAL != 0 {
        sent
    } else {
        signal_if_broken(thread, sent)
    }
}

pub fn recvfrom(thread: &mut Thread, [fd, at, bytes, flags, address, size]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let count = receive(thread, &file, &[Part { at, bytes }], flags)?;
    if address != 0 {
        write_peer(thread, &file, address, size)?;
    }
    Ok(count)
}

pub fn recvmsg(thread: &mut Thread, [fd, at, flags, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let [name, _, parts, count, ..]: Header = thread.read(at)?;
    let parts = vector(thread, parts, count)?;
    let received = receive(thread, &file, &parts, flags)?;
    if name != 0 {
        write_peer(thread, &file, name, at + WORD)?;
    }
    // Neither control data nor flags.
    thread.write(at + 5 * WORD, 0_usize)?;
    thread.write(at + 6 * WORD, flags as u32 & MSG_CMSG_CLOEXEC)?;
    Ok(received)
}

/// Writes the address of the other socket; nothing, if it has none.
fn write_peer(thread: &Thread, file: &OpenFile, to: usize, size: usize) -> Result<(), Errno> {
    let peer = file.socket().map(Socket::peer).unwrap_or_default();
    if peer.is_empty() {
        return thread.write(size, 0_u32);
    }
    write_address(thread, &peer, to, size).map(drop)
}

fn receive(thread: &Thread, file: &OpenFile, parts: &[Part], flags: usize) -> Answer {
    let flags = flags as u32;
    if flags & !RECEIVE != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let waits = file.is_blocking() && flags & MSG_DONTWAIT == 0;
    let fills = flags & MSG_WAITALL != 0;
    file.receive(&mut Parts::new(thread, parts)?, waits, fills)
}

pub fn shutdown(thread: &mut Thread, [fd, how, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let ways = match how as u32 {
        SHUT_RD => [true, false],
        SHUT_WR => [false, true],
        SHUT_RDWR => [true, true],
        _ => return Err(Errno::INVAL),
    };
    socket.shut(ways);
    Ok(0)
}

pub fn getsockopt(thread: &mut Thread, [fd, level, name, to, size, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    if level as u32 != SOL_SOCKET {
        return Err(Errno::OPNOTSUPP);
    }
    let room: u32 = thread.read(size)?;
    if (room as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let value = match name as u32 {
        SO_TYPE => SOCK_STREAM,
        SO_DOMAIN => AF_UNIX,
        SO_PROTOCOL => 0,
        SO_ACCEPTCONN => u32::from(socket.listens()),
        SO_ERROR => socket.take_error().map_or(0, |errno| errno.0 as u32),
        _ => return Err(Errno::NOPROTOOPT),
    };
    let value = value.to_le_bytes();
    let count = value.len().min(room as usize);
    thread.write_bytes(to, &value[..count])?;
    thread.write(size, count as u32)?;
    Ok(0)
}

/// Knows the one option that means nothing to these sockets.
pub fn setsockopt(thread: &mut Thread, [fd, level, name, at, size, ..]: Arguments) -> Answer {
    file(thread, fd)?;
    match (level as u32, name as u32) {
        (SOL_SOCKET, SO_REUSEADDR) if (size as i32) < size_of::<i32>() as i32 => Err(Errno::INVAL),
        (SOL_SOCKET, SO_REUSEADDR) => thread.read::<i32>(at).map(|_| 0),
        (SOL_SOCKET, _) => Err(Errno::NOPROTOOPT),
        _ => Err(Errno::OPNOTSUPP),
    }
}

pub fn getsockname(thread: &mut Thread, [fd, to, size, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    write_address(thread, &socket.address(), to, size)
}

pub fn getpeername(thread: &mut Thread, [fd, to, size, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    if !socket.is_connected() {
        return Err(Errno::NOTCONN);
    }
    write_address(thread, &socket.peer(), to, size)
}

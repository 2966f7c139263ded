//! Sending and receiving.

use super::address::{Given, read_address, write_address};
use super::control::{Room, read_control};
use super::{file, named};
use crate::abi::file::signal_if_broken;
use crate::abi::poll::deadline;
use crate::abi::transfer::{Part, Parts, vector};
use crate::abi::{Answer, Arguments, Errno};
use crate::fs::{Address, Control, OpenFile, PASS_CREDENTIALS, Received, Receiving, Socket};
use crate::process::Thread;
use crate::system::is_disturbed;
use alloc::sync::Arc;
use linux_raw_sys::net::*;
use machine::Clock;
use metal::Metal;

/// The flags of sending and receiving that are known. The others of Linux, such as those for
/// urgent bytes, are refused.
const SEND: u32 = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR | MSG_DONTROUTE | MSG_CONFIRM;
const RECEIVE: u32 =
    MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_CMSG_CLOEXEC | MSG_PEEK | MSG_TRUNC;

/// The words of `struct msghdr`. Some fields are narrower than their places.
type Header = [usize; 7];
const WORD: usize = size_of::<usize>();

/// Bytes of `struct mmsghdr`: a header, and the number of its bytes that were moved.
const COUNTED: usize = 64;
/// Only the first message is waited for.
const MSG_WAITFORONE: u32 = 1 << 16;
/// The most messages of a call.
const MESSAGES: usize = 1024;

/// Where an address is, and its size; nowhere if it is 0.
type Where = [usize; 2];

pub fn sendto(thread: &mut Thread, [fd, at, bytes, flags, address, size]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let parts = [Part { at, bytes }];
    send(
        thread,
        &file,
        &parts,
        Control::default(),
        flags,
        [address, size],
    )
}

pub fn sendmsg(thread: &mut Thread, [fd, at, flags, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    send_one(thread, &file, at, flags)
}

pub fn sendmmsg(thread: &mut Thread, [fd, at, count, flags, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let each = |thread: &mut Thread, message| send_one(thread, &file, message, flags);
    several(thread, at, count, each, || true)
}

/// Calls `each` with the addresses of up to `count` messages, and writes what it returns behind
/// each, until it fails or `goes_on` returns false. Returns how many were done; an error counts
/// only if that is 0.
fn several(
    thread: &mut Thread,
    at: usize,
    count: usize,
    mut each: impl FnMut(&mut Thread, usize) -> Answer,
    goes_on: impl Fn() -> bool,
) -> Answer {
    let count = (count as u32 as usize).min(MESSAGES);
    for done in 0..count {
        let message = at.wrapping_add(done * COUNTED);
        let moved = each(thread, message)
            .and_then(|bytes| thread.write(message.wrapping_add(7 * WORD), bytes as u32));
        match moved {
            Err(_) if done > 0 => return Ok(done),
            moved => moved?,
        }
        if !goes_on() {
            return Ok(done + 1);
        }
    }
    Ok(count)
}

fn send_one(thread: &Thread, file: &OpenFile, at: usize, flags: usize) -> Answer {
    let [name, size, parts, count, control, bytes, _]: Header = thread.read(at)?;
    let domain = file.socket().ok_or(Errno::NOTSOCK)?.domain;
    let parts = vector(thread, parts, count)?;
    let control = match control {
        0 => Control::default(),
        at => read_control(thread, domain, at, bytes)?,
    };
    send(thread, file, &parts, control, flags, [name, size])
}

fn send(
    thread: &Thread,
    file: &OpenFile,
    parts: &[Part],
    control: Control,
    flags: usize,
    to: Where,
) -> Answer {
    let flags = flags as u32;
    if flags & !SEND != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let may_wait = flags & MSG_DONTWAIT == 0;
    let mut memory = Parts::new(thread, parts)?;
    let is_stream = socket.style != SOCK_DGRAM;
    let sent = match to {
        [0, _] => file.send(&mut memory, control, may_wait),
        [_, size] if size as u32 == 0 => file.send(&mut memory, control, may_wait),
        // A connection is not asked for another address.
        _ if is_stream && socket.domain.is_internet() => file.send(&mut memory, control, may_wait),
        _ if is_stream => Err(match socket.peer() {
            Some(_) => Errno::ISCONN,
            None => Errno::OPNOTSUPP,
        }),
        to => send_to(thread, file, socket, &mut memory, control, to, may_wait),
    };
    let sent = sent.map_err(|error| match error {
        Errno::NOTCONN if socket.domain.is_internet() => Errno::DESTADDRREQ,
        error => error,
    });
    if flags & MSG_NOSIGNAL != 0 || socket.style != SOCK_STREAM {
        sent
    } else {
        signal_if_broken(thread, sent)
    }
}

/// Sends a datagram to an address.
fn send_to(
    thread: &Thread,
    file: &OpenFile,
    socket: &Arc<Socket>,
    memory: &mut Parts,
    control: Control,
    [at, size]: Where,
    may_wait: bool,
) -> Answer {
    match read_address(thread, socket.domain, at, size)? {
        Given::Address(Address::Internet(to)) => socket.send_to_port(to, memory),
        Given::Address(Address::Unix(name)) => {
            let to = named(thread, &name)?;
            let blocks = file.is_blocking() && may_wait;
            file.limited(1, || {
                let waits = || blocks && !is_disturbed();
                socket.send_to(&to, memory, control, blocks, waits)
            })
        }
        _ => Err(Errno::INVAL),
    }
}

pub fn recvfrom(thread: &mut Thread, [fd, at, bytes, flags, address, size]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let (count, received) = receive(thread, &file, &[Part { at, bytes }], flags as u32)?;
    if address != 0 {
        write_sender(thread, &file, received.from.clone(), address, size)?;
    }
    Ok(count)
}

pub fn recvmsg(thread: &mut Thread, [fd, at, flags, ..]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    receive_one(thread, &file, at, flags as u32)
}

pub fn recvmmsg(thread: &mut Thread, [fd, at, count, flags, limit, _]: Arguments) -> Answer {
    let file = file(thread, fd)?;
    let end = deadline(thread, limit)?;
    let mut flags = flags as u32;
    let once = flags & MSG_WAITFORONE != 0;
    flags &= !MSG_WAITFORONE;
    let each = |thread: &mut Thread, message| {
        let received = receive_one(thread, &file, message, flags);
        if once {
            flags |= MSG_DONTWAIT;
        }
        received
    };
    // As on Linux, the time counts only when a message has come.
    several(thread, at, count, each, || Metal::now() < end)
}

fn receive_one(thread: &Thread, file: &OpenFile, at: usize, flags: u32) -> Answer {
    let [name, _, parts, count, control, bytes, _]: Header = thread.read(at)?;
    let parts = vector(thread, parts, count)?;
    let (count, mut received) = receive(thread, file, &parts, flags)?;
    if name != 0 {
        let size = at.wrapping_add(WORD);
        write_sender(thread, file, received.from.take(), name, size)?;
    }
    let mut room = Room {
        at: control,
        bytes: if control == 0 { 0 } else { bytes },
        used: 0,
        is_cut: false,
    };
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let asks = !socket.domain.is_internet() && socket.options.has(PASS_CREDENTIALS);
    let closes = flags & MSG_CMSG_CLOEXEC != 0;
    let most: usize = parts.iter().map(|part| part.bytes).sum();
    let is_cut = received.whole > most;
    room.fill(thread, core::mem::take(&mut received.control), asks, closes)?;
    let told = [
        (is_cut, MSG_TRUNC),
        (room.is_cut, MSG_CTRUNC),
        (closes, MSG_CMSG_CLOEXEC),
    ];
    let told: u32 = told
        .iter()
        .map(|&(is, flag)| if is { flag } else { 0 })
        .sum();
    thread.write(at.wrapping_add(5 * WORD), room.used)?;
    thread.write(at.wrapping_add(6 * WORD), told)?;
    Ok(count)
}

/// Writes the address of the sender, or of the connected Unix socket; none, if it has none.
fn write_sender(
    thread: &Thread,
    file: &OpenFile,
    from: Option<Address>,
    to: usize,
    size: usize,
) -> Result<(), Errno> {
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let connected = || socket.peer().filter(|_| !socket.domain.is_internet());
    let sender = match socket.style {
        SOCK_STREAM => connected(),
        SOCK_SEQPACKET => from.and_then(|_| connected()),
        _ => from,
    };
    match sender.filter(|address| !address.is_none()) {
        None => thread.write(size, 0_u32),
        Some(address) => write_address(thread, socket.domain, &address, to, size).map(drop),
    }
}

fn receive(
    thread: &Thread,
    file: &OpenFile,
    parts: &[Part],
    flags: u32,
) -> Result<(usize, Received), Errno> {
    let socket = file.socket().ok_or(Errno::NOTSOCK)?;
    let has_whole = flags & MSG_TRUNC != 0;
    let is_tcp = socket.domain.is_internet() && socket.style == SOCK_STREAM;
    if flags & !RECEIVE != 0 || has_whole && is_tcp {
        return Err(Errno::OPNOTSUPP);
    }
    let how = Receiving {
        is_hasty: flags & MSG_DONTWAIT != 0,
        fills: flags & MSG_WAITALL != 0,
        peeks: flags & MSG_PEEK != 0,
    };
    let mut received = Received::default();
    let count = file.receive(&mut Parts::new(thread, parts)?, how, &mut received)?;
    let count = if has_whole {
        count.max(received.whole)
    } else {
        count
    };
    Ok((count, received))
}

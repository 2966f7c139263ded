//! Options of sockets.

use super::with;
use crate::abi::time::nanoseconds;
use crate::abi::{Answer, Arguments, Errno};
use crate::fs::{Domain, PASS_CREDENTIALS, Socket, option_place};
use crate::process::Thread;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use linux_raw_sys::general::timespec;
use linux_raw_sys::net::*;

/// The least and the most bytes that a socket may be made to hold.
const LEAST_BYTES: usize = 4096;
const MOST_BYTES: usize = 212_992;

const SECOND: u64 = 1_000_000_000;

pub fn getsockopt(thread: &mut Thread, [fd, level, name, to, size, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        let room: u32 = thread.read(size)?;
        if (room as i32) < 0 {
            return Err(Errno::INVAL);
        }
        let write = |value: &[u8]| {
            let count = value.len().min(room as usize);
            thread.write_bytes(to, &value[..count])?;
            thread.write(size, count as u32)?;
            Ok(0)
        };
        let (level, name) = (level as u32, name as u32);
        match (level, name) {
            (SOL_SOCKET, SO_PEERCRED) => {
                let words = socket
                    .peer_owner()
                    .map_or([0, u32::MAX, u32::MAX], |owner| {
                        [owner.process, owner.user, owner.group]
                    });
                write(words.map(u32::to_le_bytes).as_flattened())
            }
            (SOL_SOCKET, SO_LINGER) => {
                let linger = socket.options.linger.load(Ordering::Relaxed);
                let words = [u32::from(linger > 0), linger.saturating_sub(1)];
                write(words.map(u32::to_le_bytes).as_flattened())
            }
            (SOL_SOCKET, SO_RCVTIMEO | SO_SNDTIMEO) => {
                let limit = limit(socket, name).load(Ordering::Relaxed);
                let words = [limit / SECOND, limit % SECOND / 1000];
                write(words.map(u64::to_le_bytes).as_flattened())
            }
            _ => write(&number(socket, level, name)?.to_le_bytes()),
        }
    })
}

/// An option that is a number.
fn number(socket: &Socket, level: u32, name: u32) -> Result<u32, Errno> {
    if level == SOL_SOCKET {
        let [receives, sends] = socket.capacities();
        let known = match name {
            SO_TYPE => Some(socket.style),
            SO_DOMAIN => Some(match socket.domain {
                Domain::Unix => AF_UNIX,
                Domain::Four => AF_INET,
                Domain::Six => AF_INET6,
            }),
            SO_PROTOCOL => Some(match (socket.domain, socket.style) {
                (Domain::Unix, _) => 0,
                (_, SOCK_STREAM) => IPPROTO_TCP as u32,
                _ => IPPROTO_UDP as u32,
            }),
            SO_ACCEPTCONN => Some(u32::from(socket.listens())),
            SO_ERROR => Some(socket.take_error().map_or(0, |errno| errno.0 as u32)),
            // Linux counts twice the bytes.
            SO_RCVBUF => Some(2 * receives as u32),
            SO_SNDBUF => Some(2 * sends as u32),
            _ => None,
        };
        if let Some(value) = known {
            return Ok(value);
        }
    }
    let place = option_place(socket.domain, socket.style, level, name)?;
    Ok(socket.options.get(place))
}

pub fn setsockopt(thread: &mut Thread, [fd, level, name, at, size, ..]: Arguments) -> Answer {
    with(thread, fd, |_, socket| {
        let size = size as i32;
        let needs = |bytes: usize| match size >= bytes as i32 {
            true => Ok(()),
            false => Err(Errno::INVAL),
        };
        let (level, name) = (level as u32, name as u32);
        match (level, name) {
            (SOL_SOCKET, SO_LINGER) => {
                needs(8)?;
                let [on, seconds]: [u32; 2] = thread.read(at)?;
                let linger = if on == 0 {
                    0
                } else {
                    seconds.saturating_add(1)
                };
                socket.options.linger.store(linger, Ordering::Relaxed);
            }
            (SOL_SOCKET, SO_RCVTIMEO | SO_SNDTIMEO) => {
                needs(16)?;
                let [seconds, micros]: [i64; 2] = thread.read(at)?;
                if !(0..1_000_000).contains(&micros) {
                    return Err(Errno::DOM);
                }
                let time = timespec {
                    tv_sec: seconds.max(0),
                    tv_nsec: micros * 1000,
                };
                limit(socket, name).store(nanoseconds(time)?, Ordering::Relaxed);
            }
            _ => {
                let known = option_place(socket.domain, socket.style, level, name);
                let is_size = level == SOL_SOCKET && matches!(name, SO_RCVBUF | SO_SNDBUF);
                if !is_size {
                    known?;
                }
                needs(4)?;
                let value: i32 = thread.read(at)?;
                match known {
                    Ok(place) => set(socket, place, value)?,
                    Err(_) => {
                        let bytes = (value.max(0) as usize).clamp(LEAST_BYTES, MOST_BYTES);
                        socket.hold(usize::from(name == SO_SNDBUF), bytes);
                    }
                }
            }
        }
        Ok(0)
    })
}

fn set(socket: &Arc<Socket>, place: usize, value: i32) -> Result<(), Errno> {
    socket.options.set(place, value)?;
    if place == PASS_CREDENTIALS {
        socket.ask_sender(value != 0);
    }
    Ok(())
}

/// How long the socket waits for what the option names.
fn limit(socket: &Socket, name: u32) -> &AtomicU64 {
    &socket.options.limits[usize::from(name == SO_SNDTIMEO)]
}

//! Sets of interests in open files.

use super::poll::{after, deadline, set_mask};
use super::{Answer, Arguments, Errno};
use crate::fs::{Epoll, Inode, Interest, Kind, Open, OpenFile};
use crate::heap;
use crate::process::Thread;
use alloc::vec::Vec;
use linux_raw_sys::general::*;
use machine::Clock;
use metal::Metal;

/// The bytes of an `epoll_event`: the events, and the program's word.
const BYTES: usize = 12;

pub fn epoll_create(thread: &mut Thread, [size, ..]: Arguments) -> Answer {
    if size as i32 <= 0 {
        return Err(Errno::INVAL);
    }
    epoll_create1(thread, [0; 6])
}

pub fn epoll_create1(thread: &mut Thread, [flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !EPOLL_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    let inode = Inode::new(Kind::Epoll(Epoll::new()?), 0o600);
    let file = OpenFile::new(Open::Inode(inode), O_RDWR);
    thread.add_file(file, flags != 0)
}

pub fn epoll_ctl(thread: &mut Thread, [epoll, operation, fd, at, ..]: Arguments) -> Answer {
    let operation = operation as u32;
    let mut event = [0; BYTES];
    if operation != EPOLL_CTL_DEL {
        thread.read_bytes(at, &mut event)?;
    }
    let (events, data) = event.split_at(4);
    let events = events
        .iter()
        .rev()
        .fold(0, |all, &one| all << 8 | u32::from(one));
    let data = data
        .iter()
        .rev()
        .fold(0, |all, &one| all << 8 | u64::from(one));
    let (set, file) = (thread.file(epoll)?, thread.file(fd)?);
    let mut ends = Vec::new();
    file.await_events(EPOLLIN | EPOLLOUT, &mut ends)?;
    if ends.is_empty() {
        return Err(Errno::PERM);
    }
    // A set in another one is not supported.
    let epoll = set.epoll().filter(|_| file.epoll().is_none());
    let epoll = epoll.ok_or(Errno::INVAL)?;
    let interest = Interest::new(fd as u32 as usize, &file, events, data);
    match operation {
        EPOLL_CTL_ADD if heap::is_short() => return Err(Errno::NOMEM),
        EPOLL_CTL_ADD => epoll.add(interest)?,
        EPOLL_CTL_MOD if events & EPOLLEXCLUSIVE != 0 => return Err(Errno::INVAL),
        EPOLL_CTL_MOD => epoll.replace(interest)?,
        EPOLL_CTL_DEL => epoll.remove(&interest)?,
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

pub fn epoll_wait(thread: &mut Thread, [epoll, at, most, timeout, ..]: Arguments) -> Answer {
    wait(thread, [epoll, at, most], after(timeout))
}

pub fn epoll_pwait(
    thread: &mut Thread,
    [epoll, at, most, timeout, mask, bytes]: Arguments,
) -> Answer {
    let until = after(timeout);
    set_mask(thread, mask, bytes)?;
    wait(thread, [epoll, at, most], until)
}

pub fn epoll_pwait2(
    thread: &mut Thread,
    [epoll, at, most, limit, mask, bytes]: Arguments,
) -> Answer {
    let until = deadline(thread, limit)?;
    set_mask(thread, mask, bytes)?;
    wait(thread, [epoll, at, most], until)
}

/// Waits until `until` for events of at most `most` files, and writes them to `at`.
fn wait(thread: &mut Thread, [epoll, at, most]: [usize; 3], until: u64) -> Answer {
    let most = usize::try_from(most as i32).ok().filter(|&most| most > 0);
    let most = most.filter(|most| most * BYTES <= i32::MAX as usize);
    let most = most.ok_or(Errno::INVAL)?;
    let file = thread.file(epoll)?;
    let epoll = file.epoll().ok_or(Errno::INVAL)?;
    let until = thread.until.unwrap_or(until);
    // Most calls find something, or do not wait: they need no timer.
    let mut happened = epoll.wait(most, || false)?;
    if happened.is_empty() && Metal::now() < until {
        let waits = || !thread.is_disturbed();
        happened = thread.wait_until(until, || epoll.wait(most, waits))?;
        if happened.is_empty() && Metal::now() < until {
            thread.until = Some(until);
            return Err(Errno::INTR);
        }
    }
    for (index, one) in happened.iter().enumerate() {
        let mut event = [0; BYTES];
        event[..4].copy_from_slice(&one.events.to_le_bytes());
        event[4..].copy_from_slice(&one.data.to_le_bytes());
        thread.write_bytes(at.wrapping_add(index * BYTES), &event)?;
    }
    Ok(happened.len())
}

//! Waiting for several open files.

use super::time::nanoseconds;
use super::{Answer, Arguments, Errno};
use crate::fs::{Awaited, OpenFile};
use crate::heap;
use crate::process::{Set, Thread};
use crate::system::system;
use alloc::sync::Arc;
use alloc::vec::Vec;
use ipc::poll_changes;
use linux_raw_sys::general::*;
use machine::Clock;
use metal::Metal;

const NONE: u64 = u64::MAX;
const MILLISECOND: u64 = 1_000_000;
/// The events that are always reported.
const ALWAYS: u32 = POLLERR | POLLHUP | POLLNVAL;

/// A file (`None` if there is no such descriptor), and the wanted events.
type Wanted = (Option<Arc<OpenFile>>, u32);

pub fn poll(thread: &mut Thread, [at, count, timeout, ..]: Arguments) -> Answer {
    poll_until(thread, at, count, after(timeout))
}

/// The time when these milliseconds have passed; never, if the number is negative.
pub fn after(milliseconds: usize) -> u64 {
    match milliseconds as i32 {
        ..0 => NONE,
        limit => Metal::now() + limit as u64 * MILLISECOND,
    }
}

pub fn ppoll(thread: &mut Thread, [at, count, limit, mask, bytes, _]: Arguments) -> Answer {
    let until = deadline(thread, limit)?;
    set_mask(thread, mask, bytes)?;
    poll_until(thread, at, count, until)
}

fn poll_until(thread: &mut Thread, at: usize, count: usize, until: u64) -> Answer {
    let size = size_of::<pollfd>();
    let most = thread
        .process
        .limits
        .lock()
        .get(RLIMIT_NOFILE as usize)?
        .soft;
    if count as u32 as u64 > most.min(crate::fs::MOST as u64) {
        return Err(Errno::INVAL);
    }
    let count = count as u32 as usize;
    let read = |index| thread.read(at.wrapping_add(index * size));
    let polled: Vec<pollfd> = heap::collect((0..count).map(read))?;
    let wanted = heap::collect(polled.iter().map(|one| {
        let file = thread.file(one.fd as usize).ok();
        Ok((file, u32::from(one.events as u16)))
    }))?;
    // A negative number is no descriptor, but no error either.
    let look = |index: usize| match polled[index].fd {
        ..0 => 0,
        _ => events(&wanted[index]),
    };
    let mut found = wait(thread, &wanted, until, look)?;
    if found.iter().all(|&events| events == 0) {
        // Another thread may have closed some meanwhile.
        for (one, events) in polled.iter().zip(&mut found) {
            let is_closed = one.fd >= 0 && thread.file(one.fd as usize).is_err();
            *events = if is_closed { POLLNVAL } else { 0 };
        }
    }
    for (index, (one, events)) in polled.iter().zip(&found).enumerate() {
        let revents = *events as i16;
        let to = at.wrapping_add(index * size);
        thread.write(to, pollfd { revents, ..*one })?;
    }
    Ok(found.iter().filter(|&&events| events != 0).count())
}

/// The events that have come, of those wanted or always reported.
fn events((file, wanted): &Wanted) -> u32 {
    file.as_ref()
        .map_or(POLLNVAL, |file| file.events() & (wanted | ALWAYS))
}

/// Checks the `wanted` files until an event has come, or until `until`, without events.
fn wait(
    thread: &mut Thread,
    wanted: &[Wanted],
    until: u64,
    look: impl Fn(usize) -> u32,
) -> Result<Vec<u32>, Errno> {
    let until = thread.until.unwrap_or(until);
    let mut found = heap::collect(wanted.iter().map(|_| Ok(0)))?;
    let mut look = || {
        let each = found.iter_mut().enumerate();
        each.for_each(|(index, events)| *events = look(index));
        found.iter().any(|&events| events != 0)
    };
    // Most calls find something, or do not wait: they need no timer.
    if look() || Metal::now() >= until {
        return Ok(found);
    }
    let mut ends = Vec::new();
    let result = thread.wait_until(until, || {
        loop {
            // Counted before the events are, so that no change between is missed.
            ends.clear();
            let mut files = wanted.iter();
            files.try_for_each(|(file, events)| match file {
                Some(file) => file.await_events(*events, &mut ends),
                None => Ok(()),
            })?;
            // Read before the time, because a timeout also disturbs the thread.
            let is_disturbed = thread.is_disturbed();
            if look() || Metal::now() >= until {
                return Ok(());
            }
            if is_disturbed {
                return Err(Errno::INTR);
            }
            let waits = || !thread.is_disturbed();
            poll_changes(&system().kernel, ends.iter().map(Awaited::parts), waits);
        }
    });
    if result.is_err() {
        thread.until = Some(until);
    }
    result.map(|()| found)
}

pub fn select(thread: &mut Thread, [count, reads, writes, others, limit, _]: Arguments) -> Answer {
    let until = match limit {
        0 => NONE,
        limit => {
            let [seconds, micros]: [usize; 2] = thread.read(limit)?;
            let time = timespec {
                tv_sec: (seconds as i64).saturating_add(micros as i64 / 1_000_000),
                tv_nsec: micros as i64 % 1_000_000 * 1000,
            };
            Metal::now().saturating_add(nanoseconds(time)?)
        }
    };
    select_until(thread, count, [reads, writes, others], until)
}

pub fn pselect6(
    thread: &mut Thread,
    [count, reads, writes, others, limit, mask]: Arguments,
) -> Answer {
    let until = deadline(thread, limit)?;
    if mask != 0 {
        let [mask, bytes]: [usize; 2] = thread.read(mask)?;
        set_mask(thread, mask, bytes)?;
    }
    select_until(thread, count, [reads, writes, others], until)
}

/// The events of the three sets of `select`.
const SETS: [u32; 3] = [POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI];

fn select_until(thread: &mut Thread, count: usize, sets: [usize; 3], until: u64) -> Answer {
    if count as i32 > crate::fs::MOST as i32 || (count as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let words = count.div_ceil(64);
    let mut asked = [const { Vec::new() }; 3];
    for (set, at) in asked.iter_mut().zip(sets) {
        for index in 0..words {
            let word: u64 = match at {
                0 => 0,
                at => thread.read(at.wrapping_add(index * 8))?,
            };
            heap::push(set, word)?;
        }
    }
    let has = |set: &[u64], fd: usize| set[fd / 64] & 1 << (fd % 64) != 0;
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut places = Vec::new();
    for fd in 0..count {
        let of = |which: usize| {
            if has(&asked[which], fd) {
                SETS[which]
            } else {
                0
            }
        };
        let events = of(0) | of(1) | of(2);
        if events != 0 {
            heap::push(&mut wanted, (Some(thread.file(fd)?), events))?;
            heap::push(&mut places, fd)?;
        }
    }
    let look = |index: usize| events(&wanted[index]) & wanted[index].1;
    let found = wait(thread, &wanted, until, look)?;
    let mut total = 0;
    for (which, at) in sets.into_iter().enumerate() {
        let mut set = alloc::vec![0_u64; words];
        for (&fd, &events) in places.iter().zip(&found) {
            if has(&asked[which], fd) && events & SETS[which] != 0 {
                set[fd / 64] |= 1 << (fd % 64);
                total += 1;
            }
        }
        for (index, word) in set.into_iter().enumerate() {
            if at != 0 {
                thread.write(at.wrapping_add(index * 8), word)?;
            }
        }
    }
    Ok(total)
}

/// The deadline of a wait whose length is at an address; never for address 0.
pub fn deadline(thread: &Thread, limit: usize) -> Result<u64, Errno> {
    match limit {
        0 => Ok(NONE),
        limit => Ok(Metal::now().saturating_add(nanoseconds(thread.read(limit)?)?)),
    }
}

/// Sets the mask for the duration of the call, if there is one.
pub fn set_mask(thread: &mut Thread, mask: usize, bytes: usize) -> Result<(), Errno> {
    if mask != 0 {
        if bytes != 8 {
            return Err(Errno::INVAL);
        }
        let mask: u64 = thread.read(mask)?;
        thread.mask_meanwhile(Set(mask));
    }
    Ok(())
}

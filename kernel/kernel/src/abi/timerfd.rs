//! Timers as files.

use super::time::{nanoseconds, timespec as words};
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Open, OpenFile, Ticker};
use crate::process::Thread;
use linux_raw_sys::general::*;
use machine::Clock;
use metal::Metal;

pub fn timerfd_create(thread: &mut Thread, [clock, flags, ..]: Arguments) -> Answer {
    let (clock, flags) = (clock as u32, flags as u32);
    let is_known = matches!(clock, CLOCK_REALTIME | CLOCK_MONOTONIC | CLOCK_BOOTTIME);
    if flags & !(TFD_CLOEXEC | TFD_NONBLOCK) != 0 || !is_known {
        return Err(Errno::INVAL);
    }
    let ticker = Ticker::new(clock == CLOCK_REALTIME)?;
    let inode = Inode::new(Kind::Ticker(ticker), 0o600);
    let file = OpenFile::new(Open::Inode(inode), O_RDWR | flags & TFD_NONBLOCK);
    thread.add_file(file, flags & TFD_CLOEXEC != 0)
}

/// Nobody sets the clock, so no timer is cancelled by that (`TFD_TIMER_CANCEL_ON_SET`).
pub fn timerfd_settime(thread: &mut Thread, [fd, flags, new, old, ..]: Arguments) -> Answer {
    let interval = nanoseconds(thread.read(new)?)?;
    let first = nanoseconds(thread.read(new + size_of::<timespec>())?)?;
    if flags as u32 & !(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) != 0 {
        return Err(Errno::INVAL);
    }
    let file = thread.file(fd)?;
    let ticker = file.ticker().ok_or(Errno::INVAL)?;
    let start = match flags as u32 & TFD_TIMER_ABSTIME {
        0 => Metal::now().cast_signed(),
        _ if ticker.is_of_wall => -metal::start_of_time().cast_signed(),
        _ => 0,
    };
    let next = match first {
        0 => 0,
        // A time in the past, even before the start, has come.
        first => first.saturating_add_signed(start).max(1),
    };
    let before = ticker.set(next, interval);
    match old {
        0 => Ok(0),
        old => tell(thread, old, before),
    }
}

pub fn timerfd_gettime(thread: &mut Thread, [fd, to, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let ticker = file.ticker().ok_or(Errno::INVAL)?;
    tell(thread, to, ticker.rest())
}

/// Writes a timer: the interval, and the time until it expires.
fn tell(thread: &Thread, to: usize, (rest, interval): (u64, u64)) -> Answer {
    thread.write(to, words(interval))?;
    thread.write(to + size_of::<timespec>(), words(rest))?;
    Ok(0)
}

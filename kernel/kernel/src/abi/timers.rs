//! Alarms.

use super::{Answer, Arguments, Errno};
use crate::process::{Measure, Thread};
use linux_raw_sys::general::{ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL};

const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1000;

/// `struct timeval`, in words: seconds and microseconds.
type Time = [usize; 2];

pub fn alarm(thread: &mut Thread, [seconds, ..]: Arguments) -> Answer {
    let first = u64::from(seconds as u32) * SECOND;
    let (before, _) = thread.process.set_alarm(Measure::Clock, first, 0);
    // A rest of less than half a second counts as one second.
    Ok(match before {
        0 => 0,
        before => ((before + SECOND / 2) / SECOND).max(1) as usize,
    })
}

pub fn setitimer(thread: &mut Thread, [which, new, old, ..]: Arguments) -> Answer {
    let (interval, first) = match new {
        0 => (0, 0),
        new => (time(thread, new)?, time(thread, new + size_of::<Time>())?),
    };
    let before = thread.process.set_alarm(measure(which)?, first, interval);
    match old {
        0 => Ok(0),
        old => tell(thread, old, before),
    }
}

pub fn getitimer(thread: &mut Thread, [which, to, ..]: Arguments) -> Answer {
    tell(thread, to, thread.process.alarm(measure(which)?))
}

fn measure(which: usize) -> Result<Measure, Errno> {
    match which as u32 {
        ITIMER_REAL => Ok(Measure::Clock),
        ITIMER_VIRTUAL => Ok(Measure::User),
        ITIMER_PROF => Ok(Measure::Cpu),
        _ => Err(Errno::INVAL),
    }
}

/// Writes a timer: the interval, and the time to the next signal.
fn tell(thread: &Thread, to: usize, (rest, interval): (u64, u64)) -> Answer {
    thread.write(to, words(interval))?;
    // The time left of a running timer is not 0.
    thread.write(
        to + size_of::<Time>(),
        words(rest.next_multiple_of(MICROSECOND)),
    )?;
    Ok(0)
}

/// A time in nanoseconds.
fn time(thread: &Thread, at: usize) -> Result<u64, Errno> {
    let [seconds, rest]: Time = thread.read(at)?;
    if (seconds as i64) < 0 || rest as u64 >= SECOND / MICROSECOND {
        return Err(Errno::INVAL);
    }
    let rest = rest as u64 * MICROSECOND;
    Ok((seconds as u64).saturating_mul(SECOND).saturating_add(rest))
}

fn words(time: u64) -> Time {
    [time / SECOND, time % SECOND / MICROSECOND].map(|part| part as usize)
}

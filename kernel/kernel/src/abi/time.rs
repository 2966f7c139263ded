//! Time.

use super::{Answer, Arguments, Errno};
use crate::process::Thread;
use linux_raw_sys::general::*;
use machine::{Clock, Topology};
use metal::Metal;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

pub fn timespec(nanoseconds: u64) -> timespec {
    timespec {
        tv_sec: (nanoseconds / SECOND) as _,
        tv_nsec: (nanoseconds % SECOND) as _,
    }
}

pub fn nanoseconds(time: timespec) -> Result<u64, Errno> {
    let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    match (seconds, rest) {
        (Ok(seconds), Ok(rest)) if rest < SECOND => {
            Ok(seconds.saturating_mul(SECOND).saturating_add(rest))
        }
        _ => Err(Errno::INVAL),
    }
}

/// The time by a clock.
fn now(clock: usize) -> Result<u64, Errno> {
    match clock as u32 {
        // There are no leap seconds.
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI => {
            Ok(metal::start_of_time() + Metal::now())
        }
        CLOCK_MONOTONIC | CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_BOOTTIME => {
            Ok(Metal::now())
        }
        _ => Err(Errno::INVAL),
    }
}

pub fn clock_gettime(thread: &mut Thread, [clock, to, ..]: Arguments) -> Answer {
    let time = match clock as u32 {
        CLOCK_PROCESS_CPUTIME_ID => thread.process.used().time(),
        CLOCK_THREAD_CPUTIME_ID => thread.shared.usage.used().time(),
        _ => now(clock)?,
    };
    thread.write(to, timespec(time))?;
    Ok(0)
}

pub fn clock_getres(thread: &mut Thread, [clock, to, ..]: Arguments) -> Answer {
    if !matches!(
        clock as u32,
        CLOCK_PROCESS_CPUTIME_ID | CLOCK_THREAD_CPUTIME_ID
    ) {
        now(clock)?;
    }
    if to != 0 {
        thread.write(to, timespec(1))?;
    }
    Ok(0)
}

pub fn gettimeofday(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    let now = now(CLOCK_REALTIME as usize)?;
    if to != 0 {
        let time = timeval {
            tv_sec: (now / SECOND) as _,
            tv_usec: (now % SECOND / 1000) as _,
        };
        thread.write(to, time)?;
    }
    Ok(0)
}

pub fn time(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    let seconds = now(CLOCK_REALTIME as usize)? / SECOND;
    if to != 0 {
        thread.write(to, seconds)?;
    }
    Ok(seconds as usize)
}

pub fn nanosleep(thread: &mut Thread, [time, rest, ..]: Arguments) -> Answer {
    let time = nanoseconds(thread.read(time)?)?;
    sleep(thread, Metal::now().saturating_add(time), rest)
}

pub fn clock_nanosleep(thread: &mut Thread, [clock, flags, time, rest, ..]: Arguments) -> Answer {
    let time = nanoseconds(thread.read(time)?)?;
    let is_absolute = flags as u32 & TIMER_ABSTIME != 0;
    let rest = if is_absolute { 0 } else { rest };
    match clock as u32 {
        CLOCK_MONOTONIC_RAW | CLOCK_MONOTONIC_COARSE | CLOCK_REALTIME_COARSE => {
            return Err(Errno::OPNOTSUPP);
        }
        CLOCK_PROCESS_CPUTIME_ID => return sleep_by_process(thread, time, is_absolute, rest),
        _ => {}
    }
    let by_clock = now(clock)?;
    let time = if is_absolute {
        time.saturating_sub(by_clock)
    } else {
        time
    };
    sleep(thread, Metal::now().saturating_add(time), rest)
}

/// Sleeps until the process has used `time` on CPUs, from now on or in all, or until a signal
/// comes; then the rest of the time is written to `rest`.
fn sleep_by_process(thread: &mut Thread, time: u64, is_absolute: bool, rest: usize) -> Answer {
    let used = |thread: &Thread| thread.process.used().time();
    let start = if is_absolute { 0 } else { used(thread) };
    let target = thread.until.unwrap_or(start.saturating_add(time));
    loop {
        let left = target.saturating_sub(used(thread));
        if left == 0 {
            return Ok(0);
        }
        // The process's threads cannot use up the time faster than on all CPUs.
        let nap = (left / Metal.cpus().len() as u64).max(MILLISECOND);
        let until = Metal::now().saturating_add(nap);
        thread.wait_until(until, || thread.pause());
        if thread.is_disturbed() {
            return interrupted(thread, target, left, rest);
        }
    }
}

/// Sleeps until `time`, or until a signal comes; then the rest of the time is written to `rest`.
fn sleep(thread: &mut Thread, time: u64, rest: usize) -> Answer {
    // A restarted sleep keeps its deadline.
    let time = thread.until.unwrap_or(time);
    thread.wait_until(time, || thread.pause());
    let left = time.saturating_sub(Metal::now());
    if left == 0 {
        return Ok(0);
    }
    interrupted(thread, time, left, rest)
}

/// Ends a sleep until `time` that a signal has interrupted: writes the time left to `rest`.
fn interrupted(thread: &mut Thread, time: u64, left: u64, rest: usize) -> Answer {
    if rest != 0 {
        thread.write(rest, timespec(left))?;
    }
    thread.until = Some(time);
    Err(Errno::INTR)
}

//! Priorities. The scheduler knows none: all threads have nice 0.

use super::affinity::found;
use super::{Answer, Arguments, Errno};
use crate::process::{Thread, group};
use linux_raw_sys::general::{PRIO_PGRP, PRIO_PROCESS, PRIO_USER};

/// What stands for nice 0: 20 less the nice value, so that it is no error.
const NORMAL: usize = 20;

pub fn getpriority(thread: &mut Thread, [which, who, ..]: Arguments) -> Answer {
    exists(thread, which, who)?;
    Ok(NORMAL)
}

/// Refuses each value but 0, as Linux refuses a caller that may not set it.
pub fn setpriority(thread: &mut Thread, [which, who, nice, ..]: Arguments) -> Answer {
    exists(thread, which, who)?;
    match nice as i32 {
        0 => Ok(0),
        _ => Err(Errno::ACCES),
    }
}

/// Fails if no thread is meant.
fn exists(thread: &Thread, which: usize, who: usize) -> Result<(), Errno> {
    let is_there = match (which as u32, who as u32) {
        (PRIO_PROCESS, _) => return found(thread, who).map(drop),
        // The caller's group; the caller's user, who is the only one.
        (PRIO_PGRP | PRIO_USER, 0) => true,
        (PRIO_PGRP, number) => group(number).next().is_some(),
        (PRIO_USER, _) => false,
        _ => return Err(Errno::INVAL),
    };
    is_there.then_some(()).ok_or(Errno::SRCH)
}

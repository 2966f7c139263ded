//! Priorities and policies. The scheduler knows none: all threads have nice 0 and Linux's usual
//! policy.

use super::affinity::found;
use super::{Answer, Arguments, Errno};
use crate::process::{PROCESSES, Process, Thread, group};
use alloc::sync::Arc;
use linux_raw_sys::general::{
    PRIO_PGRP, PRIO_PROCESS, PRIO_USER, SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO, SCHED_IDLE,
    SCHED_NORMAL, SCHED_RR,
};

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

pub fn sched_getscheduler(thread: &mut Thread, [tid, ..]: Arguments) -> Answer {
    refuse_negative(tid)?;
    found(thread, tid)?;
    Ok(SCHED_NORMAL as usize)
}

pub fn sched_getparam(thread: &mut Thread, [tid, to, ..]: Arguments) -> Answer {
    refuse_negative(tid)?;
    found(thread, tid)?;
    thread.write(to, 0_u32)?;
    Ok(0)
}

/// Refuses each policy but the usual one, as Linux refuses a caller that may not set it.
pub fn sched_setscheduler(thread: &mut Thread, [tid, policy, from, ..]: Arguments) -> Answer {
    if (policy as i32) < 0 {
        return Err(Errno::INVAL);
    }
    set_policy(thread, tid, policy as u32, from)
}

pub fn sched_setparam(thread: &mut Thread, [tid, from, ..]: Arguments) -> Answer {
    set_policy(thread, tid, SCHED_NORMAL, from)
}

fn set_policy(thread: &Thread, tid: usize, policy: u32, from: usize) -> Answer {
    refuse_negative(tid)?;
    let priority: u32 = thread.read(from)?;
    let process = found(thread, tid)?.process.clone();
    let [least, most] = priorities(policy)?;
    if !(least..=most).contains(&priority) {
        return Err(Errno::INVAL);
    }
    thread.refuse_control(&process)?;
    match policy {
        SCHED_NORMAL => Ok(0),
        // That needs more than a priority.
        SCHED_DEADLINE => Err(Errno::INVAL),
        _ => Err(Errno::PERM),
    }
}

fn refuse_negative(tid: usize) -> Result<(), Errno> {
    match tid as i32 {
        ..0 => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

pub fn sched_get_priority_max(_: &mut Thread, [policy, ..]: Arguments) -> Answer {
    Ok(priorities(policy as u32)?[1] as usize)
}

pub fn sched_get_priority_min(_: &mut Thread, [policy, ..]: Arguments) -> Answer {
    Ok(priorities(policy as u32)?[0] as usize)
}

/// The least and the most priority with a policy.
fn priorities(policy: u32) -> Result<[u32; 2], Errno> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok([1, 99]),
        SCHED_NORMAL | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok([0, 0]),
        _ => Err(Errno::INVAL),
    }
}

/// Fails if no thread is meant.
fn exists(thread: &Thread, which: usize, who: usize) -> Result<(), Errno> {
    let is_there = match (which as u32, who as u32) {
        (PRIO_PROCESS, _) => return found(thread, who).map(drop),
        // The caller's own.
        (PRIO_PGRP | PRIO_USER, 0) => true,
        (PRIO_PGRP, number) => group(number).next().is_some(),
        (PRIO_USER, user) => {
            let is_of = |process: Arc<Process>| process.users.lock().user.real == user;
            PROCESSES.all().any(is_of)
        }
        _ => return Err(Errno::INVAL),
    };
    is_there.then_some(()).ok_or(Errno::SRCH)
}

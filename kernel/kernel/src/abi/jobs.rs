//! Groups of processes and sessions.

use super::{Answer, Arguments, Errno};
use crate::process::{PROCESSES, Process, Thread};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

/// Puts the caller or a child of its session in a group.
pub fn setpgid(thread: &mut Thread, [pid, group, ..]: Arguments) -> Answer {
    let (caller, group) = (&thread.process, group as u32);
    if (group as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let target = match pid as u32 {
        pid if pid == 0 || pid == caller.pid => caller.clone(),
        pid => {
            let child = caller.family.child(pid).ok_or(Errno::SRCH)?;
            if child.job.session() != caller.job.session() {
                return Err(Errno::PERM);
            }
            if child.job.has_executed.load(Ordering::Relaxed) {
                return Err(Errno::ACCES);
            }
            child
        }
    };
    target.join_group(if group == 0 { target.pid } else { group })?;
    Ok(0)
}

pub fn getpgid(thread: &mut Thread, [pid, ..]: Arguments) -> Answer {
    Ok(process(thread, pid)?.job.group() as usize)
}

pub fn getpgrp(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.process.job.group() as usize)
}

pub fn setsid(thread: &mut Thread, _: Arguments) -> Answer {
    thread.process.begin_session()?;
    Ok(thread.process.pid as usize)
}

pub fn getsid(thread: &mut Thread, [pid, ..]: Arguments) -> Answer {
    Ok(process(thread, pid)?.job.session() as usize)
}

/// The process with a number; 0 is the caller's.
fn process(thread: &Thread, pid: usize) -> Result<Arc<Process>, Errno> {
    match pid as u32 {
        0 => Ok(thread.process.clone()),
        pid => PROCESSES.get(pid).ok_or(Errno::SRCH),
    }
}

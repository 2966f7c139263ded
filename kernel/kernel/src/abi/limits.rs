//! Limits of processes.

use super::Errno;
use super::{Answer, Arguments};
use crate::process::{Limit, PROCESSES, Thread};

pub fn prlimit64(thread: &mut Thread, [pid, resource, new, old, ..]: Arguments) -> Answer {
    let process = match pid as u32 {
        0 => thread.process.clone(),
        pid => PROCESSES.get(pid).ok_or(Errno::SRCH)?,
    };
    let before = if new == 0 {
        process.limits.lock().get(resource as u32 as usize)?
    } else {
        let [soft, hard]: [usize; 2] = thread.read(new)?;
        let (soft, hard) = (soft as u64, hard as u64);
        thread.refuse_control(&process)?;
        process.set_limit(resource as u32 as usize, Limit { soft, hard })?
    };
    if old != 0 {
        thread.write(old, [before.soft as usize, before.hard as usize])?;
    }
    Ok(0)
}

pub fn getrlimit(thread: &mut Thread, [resource, to, ..]: Arguments) -> Answer {
    let limit = thread.process.limits.lock().get(resource as u32 as usize)?;
    thread.write(to, [limit.soft as usize, limit.hard as usize])?;
    Ok(0)
}

pub fn setrlimit(thread: &mut Thread, [resource, from, ..]: Arguments) -> Answer {
    let [soft, hard]: [usize; 2] = thread.read(from)?;
    let (soft, hard) = (soft as u64, hard as u64);
    thread
        .process
        .set_limit(resource as u32 as usize, Limit { soft, hard })?;
    Ok(0)
}

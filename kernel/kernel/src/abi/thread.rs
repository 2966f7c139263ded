//! Threads.

use super::{Answer, Arguments, Errno};
use crate::process::{NAME, PROCESSES, Signal, Thread};
use core::sync::atomic::Ordering;
use linux_raw_sys::prctl::*;
use machine::Tasks;
use metal::Metal;

/// The code of `arch_prctl` that sets the register FS.
const ARCH_SET_FS: usize = 0x1002;
/// The code of `arch_prctl` that reads the register FS.
const ARCH_GET_FS: usize = 0x1003;

/// Makes another thread of the process, which continues where this one is, with the result 0. It
/// does not run yet.
pub fn clone(thread: &Thread) -> Result<Thread, Errno> {
    let mut frame = thread.frame.clone();
    frame.rax = 0;
    let tid = PROCESSES.number();
    let mut new = Thread::new(thread.process.clone(), thread.space.clone(), tid, frame)?;
    new.set_mask(thread.mask());
    new.thread_pointer = thread.thread_pointer;
    *new.shared.name.lock() = *thread.shared.name.lock();
    *new.shared.affinity.lock() = *thread.shared.affinity.lock();
    Ok(new)
}

pub fn arch_prctl(thread: &mut Thread, [code, value, ..]: Arguments) -> Answer {
    match code {
        ARCH_SET_FS if value >= machine::pte::USER_END => Err(Errno::PERM),
        ARCH_SET_FS => {
            thread.set_thread_pointer(value);
            Ok(0)
        }
        ARCH_GET_FS => {
            thread.write(value, thread.thread_pointer)?;
            Ok(0)
        }
        _ => Err(Errno::INVAL),
    }
}

pub fn set_tid_address(thread: &mut Thread, [address, ..]: Arguments) -> Answer {
    thread.clear_tid = address;
    gettid(thread, [0; 6])
}

/// Bytes of `struct robust_list_head`.
const ROBUST_LIST: usize = 24;

pub fn set_robust_list(thread: &mut Thread, [at, bytes, ..]: Arguments) -> Answer {
    if bytes != ROBUST_LIST {
        return Err(Errno::INVAL);
    }
    thread.robust_list = at;
    Ok(0)
}

/// Supports only the caller's own list.
pub fn get_robust_list(thread: &mut Thread, [tid, at, bytes, ..]: Arguments) -> Answer {
    if tid != 0 && tid as u32 != thread.shared.tid() {
        return Err(Errno::SRCH);
    }
    thread.write(at, thread.robust_list)?;
    thread.write(bytes, ROBUST_LIST)?;
    Ok(0)
}

pub fn gettid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.shared.tid() as usize)
}

pub fn sched_yield(thread: &mut Thread, _: Arguments) -> Answer {
    thread.shared.usage.away(Metal::yield_now);
    Ok(0)
}

/// Supports the thread's name, the signal at the end of the process's parent, and
/// `PR_SET_CHILD_SUBREAPER`, `PR_SET_DUMPABLE` and `PR_SET_NO_NEW_PRIVS`.
pub fn prctl(thread: &mut Thread, [code, at, ..]: Arguments) -> Answer {
    match code as u32 {
        PR_SET_NAME => {
            let text = thread.read_start(at, NAME - 1)?;
            let mut name = [0; NAME];
            name[..text.len()].copy_from_slice(&text);
            *thread.shared.name.lock() = name;
        }
        PR_GET_NAME => {
            let name = *thread.shared.name.lock();
            thread.write_bytes(at, &name)?;
        }
        PR_SET_PDEATHSIG => {
            let signal = match at {
                0 => 0,
                at => Signal::new(at)?.number(),
            };
            thread.process.death_signal.store(signal, Ordering::Relaxed);
        }
        PR_GET_PDEATHSIG => {
            let signal = thread.process.death_signal.load(Ordering::Relaxed);
            thread.write(at, signal)?;
        }
        PR_SET_CHILD_SUBREAPER => {
            let process = &thread.process;
            process.is_reaper.store(at != 0, Ordering::Relaxed);
        }
        PR_SET_DUMPABLE => match at {
            0 | 1 => thread.process.is_dumpable.store(at == 1, Ordering::Relaxed),
            _ => return Err(Errno::INVAL),
        },
        PR_GET_DUMPABLE => {
            return Ok(usize::from(
                thread.process.is_dumpable.load(Ordering::Relaxed),
            ));
        }
        PR_SET_NO_NEW_PRIVS if at == 1 => thread.process.is_confined.store(true, Ordering::Relaxed),
        PR_GET_NO_NEW_PRIVS if at == 0 => {
            return Ok(usize::from(
                thread.process.is_confined.load(Ordering::Relaxed),
            ));
        }
        PR_GET_CHILD_SUBREAPER => {
            let is_reaper = thread.process.is_reaper.load(Ordering::Relaxed);
            thread.write(at, u32::from(is_reaper))?;
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

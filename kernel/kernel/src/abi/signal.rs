//! Signals.

use super::time::nanoseconds;
use super::{Answer, Arguments, Errno};
use crate::process::{Action, Info, PROCESSES, Process, Set, Signal, SignalStack, Thread, group};
use alloc::sync::Arc;
use core::iter;
use linux_raw_sys::general::{SI_TKILL, SIG_BLOCK, SIG_SETMASK, SIG_UNBLOCK};
use machine::Clock;
use metal::Metal;

/// Bytes of a set of signals.
const SET: usize = 8;
/// `struct sigaction` as the kernel has it: handler, flags, restorer, mask.
type ActionWords = [usize; 2];

pub fn rt_sigaction(thread: &mut Thread, [signal, new, old, set, ..]: Arguments) -> Answer {
    let signal = Signal::new(signal)?;
    if set != SET || new != 0 && matches!(signal, Signal::KILL | Signal::STOP) {
        return Err(Errno::INVAL);
    }
    let read = |at| -> Result<Action, Errno> {
        let [handler, flags]: ActionWords = thread.read(at)?;
        let [restorer, mask]: ActionWords = thread.read(at + size_of::<ActionWords>())?;
        Ok(Action {
            handler,
            flags: flags as u32,
            restorer,
            mask: Set(mask as u64),
        })
    };
    let new = if new == 0 { None } else { Some(read(new)?) };
    let (before, is_ignored) = {
        let mut handlers = thread.process.handlers.lock();
        let before = handlers.get(signal);
        if let Some(action) = new {
            handlers.set(signal, action);
        }
        let is_ignored = new.is_some() && handlers.ignores(signal);
        (before, is_ignored)
    };
    if is_ignored {
        thread.process.forget_signal(signal);
    }
    if old != 0 {
        thread.write(old, [before.handler, before.flags as usize])?;
        let rest = [before.restorer, before.mask.0 as usize];
        thread.write(old + size_of::<ActionWords>(), rest)?;
    }
    Ok(0)
}

pub fn rt_sigprocmask(thread: &mut Thread, [how, new, old, set, ..]: Arguments) -> Answer {
    if set != SET {
        return Err(Errno::INVAL);
    }
    let before = thread.mask();
    if new != 0 {
        let new: u64 = thread.read(new)?;
        let mask = match how as u32 {
            SIG_BLOCK => before.0 | new,
            SIG_UNBLOCK => before.0 & !new,
            SIG_SETMASK => new,
            _ => return Err(Errno::INVAL),
        };
        thread.set_mask(Set(mask));
    }
    if old != 0 {
        thread.write(old, before.0)?;
    }
    Ok(0)
}

/// Returns the restored register, so that the call leaves it unchanged.
pub fn rt_sigreturn(thread: &mut Thread, _: Arguments) -> Answer {
    if thread.return_from_handler().is_err() {
        thread.fault_signal(Info::kernel(Signal::SEGV));
    }
    Ok(thread.frame.rax)
}

pub fn rt_sigpending(thread: &mut Thread, [to, set, ..]: Arguments) -> Answer {
    if set > SET {
        return Err(Errno::INVAL);
    }
    let pending = thread.shared.pending.set().0 | thread.process.pending.set().0;
    let held = pending & thread.mask().0;
    thread.write_bytes(to, &held.to_le_bytes()[..set])?;
    Ok(0)
}

/// Waits for a signal, with another mask meanwhile.
pub fn rt_sigsuspend(thread: &mut Thread, [mask, set, ..]: Arguments) -> Answer {
    if set != SET {
        return Err(Errno::INVAL);
    }
    let mask: u64 = thread.read(mask)?;
    thread.mask_meanwhile(Set(mask));
    pause(thread, [0; 6])
}

/// Waits for a signal.
pub fn pause(thread: &mut Thread, _: Arguments) -> Answer {
    thread.pause();
    Err(Errno::INTR)
}

/// Waits for a signal that the thread blocks, and takes it.
pub fn rt_sigtimedwait(thread: &mut Thread, [set, to, limit, bytes, ..]: Arguments) -> Answer {
    if bytes != SET {
        return Err(Errno::INVAL);
    }
    let wanted = Set(thread.read(set)?).maskable();
    let until = match limit {
        0 => u64::MAX,
        limit => Metal::now().saturating_add(nanoseconds(thread.read(limit)?)?),
    };
    let mut taken = thread.shared.take_signal(wanted);
    if taken.is_none() && limit != 0 && until <= Metal::now() {
        return Err(Errno::AGAIN);
    }
    if taken.is_none() {
        thread.wait_until(until, || thread.await_signals(wanted));
        taken = thread.shared.take_signal(wanted);
    }
    match taken {
        Some(info) => {
            if to != 0 {
                thread.write_bytes(to, &info.bytes())?;
            }
            Ok(info.signal.number() as usize)
        }
        None if Metal::now() >= until => Err(Errno::AGAIN),
        None => Err(Errno::INTR),
    }
}

/// The stack of handlers: the words of `stack_t` are address, flags and length.
pub fn sigaltstack(thread: &mut Thread, [new, old, ..]: Arguments) -> Answer {
    const WORD: usize = 8;
    let pointer = thread.frame.rsp;
    let before = thread.signal_stack;
    if new != 0 {
        let [start, flags]: [usize; 2] = thread.read(new)?;
        let bytes: usize = thread.read(new + 2 * WORD)?;
        if before.has(pointer) {
            return Err(Errno::PERM);
        }
        thread.signal_stack = SignalStack::new([start, flags as u32 as usize, bytes])?;
    }
    if old != 0 {
        let words = before.words(pointer).map(usize::to_le_bytes);
        thread.write_bytes(old, words.as_flattened())?;
    }
    Ok(0)
}

pub fn kill(thread: &mut Thread, [pid, signal, ..]: Arguments) -> Answer {
    let caller = &thread.process;
    let number = match pid as i32 {
        i32::MIN => return Err(Errno::SRCH),
        pid if pid > 0 => {
            let target = process(pid as u32)?;
            return send_all(thread, iter::once(target), signal);
        }
        -1 => {
            let is_other = |it: &Arc<Process>| it.pid != 1 && it.pid != caller.pid;
            return send_all(thread, PROCESSES.all().filter(is_other), signal);
        }
        0 => caller.job.group(),
        number => number.unsigned_abs(),
    };
    send_all(thread, group(number), signal)
}

/// Fails unless the thread may send the signal to a process.
pub fn refuse(thread: &Thread, target: &Process, signal: usize) -> Result<(), Errno> {
    let goes_on = signal == Signal::CONTINUE.number() as usize;
    if goes_on && target.job.session() == thread.process.job.session() {
        return Ok(());
    }
    // One after the other: they may be the same process.
    let caller = thread.process.users.lock().clone();
    let its = target.users.lock().clone();
    match caller.may_signal(&its) {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}

/// Sends a signal to those of the processes that get it from the caller; [`Errno::SRCH`] if there
/// are no processes, [`Errno::PERM`] if none gets it.
fn send_all(thread: &Thread, targets: impl Iterator<Item = Arc<Process>>, signal: usize) -> Answer {
    let mut sent = Err(Errno::SRCH);
    let info = match signal {
        0 => None,
        signal => Some(Info::user(Signal::new(signal)?, &thread.process)),
    };
    for target in targets {
        match (refuse(thread, &target, signal), info) {
            (Err(errno), _) => sent = sent.or(Err(errno)),
            (Ok(()), None) => sent = Ok(0),
            (Ok(()), Some(info)) => sent = target.send(info).map(|()| 0),
        }
    }
    sent
}

fn process(pid: u32) -> Result<Arc<Process>, Errno> {
    PROCESSES.get(pid).ok_or(Errno::SRCH)
}

/// Sends a signal to a thread of any process.
pub fn tkill(thread: &mut Thread, [tid, signal, ..]: Arguments) -> Answer {
    if tid as i32 <= 0 {
        return Err(Errno::INVAL);
    }
    let has = |process: &Arc<Process>| {
        let threads = process.threads.lock();
        threads.iter().any(|it| it.tid() == tid as u32)
    };
    let found = if has(&thread.process) {
        Some(thread.process.clone())
    } else {
        PROCESSES.all().find(has)
    };
    send_to(thread, &*found.ok_or(Errno::SRCH)?, tid, signal)
}

pub fn tgkill(thread: &mut Thread, [pid, tid, signal, ..]: Arguments) -> Answer {
    if pid as i32 <= 0 || tid as i32 <= 0 {
        return Err(Errno::INVAL);
    }
    send_to(thread, &*process(pid as u32)?, tid, signal)
}

fn send_to(sender: &Thread, process: &Process, tid: usize, signal: usize) -> Answer {
    let tid = tid as u32;
    refuse(sender, process, signal)?;
    if signal == 0 {
        let threads = process.threads.lock();
        let found = threads.iter().any(|it| it.tid() == tid);
        return if found { Ok(0) } else { Err(Errno::SRCH) };
    }
    let info = Info::thread(Signal::new(signal)?, &sender.process);
    process.send_to(tid, info)?;
    Ok(0)
}

pub fn rt_sigqueueinfo(thread: &mut Thread, [pid, signal, from, ..]: Arguments) -> Answer {
    let target = process(pid as u32)?;
    let info = told(thread, signal, from, target.pid)?;
    refuse(thread, &target, signal)?;
    target.send(info)?;
    Ok(0)
}

pub fn rt_tgsigqueueinfo(thread: &mut Thread, [pid, tid, signal, from, ..]: Arguments) -> Answer {
    let target = process(pid as u32)?;
    let info = told(thread, signal, from, target.pid)?;
    refuse(thread, &target, signal)?;
    target.send_to(tid as u32, info)?;
    Ok(0)
}

/// The caller's description of a signal to a process. To another process it may not claim to come
/// from the kernel.
pub fn told(thread: &Thread, signal: usize, from: usize, to: u32) -> Result<Info, Errno> {
    let mut bytes = [0; _];
    thread.read_bytes(from, &mut bytes)?;
    let info = Info::read(Signal::new(signal)?, &bytes);
    if (info.code >= 0 || info.code == SI_TKILL) && to != thread.process.pid {
        Err(Errno::PERM)
    } else {
        Ok(info)
    }
}

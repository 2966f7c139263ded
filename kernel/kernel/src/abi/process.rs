//! Processes: how they begin, the programs they run, how they end.

use super::pidfd::{add_handle, handle_of};
use super::{Answer, Arguments, Errno};
use crate::process::{News, Shares, Status, Thread, Wanted, Which, execute, reserve};
use crate::program::{Start, Texts};
use linux_raw_sys::general::*;

/// The most bytes of one argument, its end included.
const TEXT: usize = 128 << 10;
/// Arguments and environment together may have this part of the stack's limit, within these bounds.
const STACK_PART: u64 = 4;
const LEAST: u64 = 128 << 10;
const MOST: u64 = 6 << 20;

pub fn fork(thread: &mut Thread, _: Arguments) -> Answer {
    clone(thread, [SIGCHLD as usize, 0, 0, 0, 0, 0])
}

pub fn vfork(thread: &mut Thread, _: Arguments) -> Answer {
    let flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    clone(thread, [flags as usize, 0, 0, 0, 0, 0])
}

/// The flags of `clone` that are allowed: of the others, threads share everything anyway, and
/// processes share nothing.
const FLAGS: u32 = CSIGNAL
    | CLONE_VM
    | CLONE_FS
    | CLONE_FILES
    | CLONE_SIGHAND
    | CLONE_PTRACE
    | CLONE_VFORK
    | CLONE_PARENT
    | CLONE_THREAD
    | CLONE_SYSVSEM
    | CLONE_SETTLS
    | CLONE_PIDFD
    | CLONE_PARENT_SETTID
    | CLONE_CHILD_CLEARTID
    | CLONE_DETACHED
    | CLONE_UNTRACED
    | CLONE_CHILD_SETTID
    | CLONE_IO;

/// Makes a new process, or a thread of this one. The file that stands for the process has its
/// descriptor in the place of the thread's number.
pub fn clone(thread: &mut Thread, arguments: Arguments) -> Answer {
    let [flags, stack, parent_tid, child_tid, tls, _] = arguments;
    let both = CLONE_PIDFD | CLONE_PARENT_SETTID;
    if flags as u32 & both == both {
        return Err(Errno::INVAL);
    }
    clone_with(
        thread,
        [flags, stack, parent_tid, child_tid, tls, parent_tid],
    )
}

/// As [`clone`], with the address of that descriptor as the last argument.
pub fn clone_with(thread: &mut Thread, arguments: Arguments) -> Answer {
    if arguments[0] as u32 & CLONE_PIDFD == 0 {
        return make(thread, arguments, None);
    }
    if arguments[0] as u32 & (CLONE_THREAD | CLONE_DETACHED) != 0 {
        return Err(Errno::INVAL);
    }
    // Taken first, because a process that has been made has to start.
    let number = add_handle(thread, thread.process.clone(), 0)?;
    let made = make(thread, arguments, Some(number));
    if made.is_err() {
        let unused = thread.process.files.lock().take(number);
        drop(unused);
    }
    made
}

/// Puts the file that stands for a new process in its place, which the process does not inherit.
fn put_handle(thread: &Thread, new: &Thread, number: usize, at: usize) -> Result<(), Errno> {
    let inherited = new.process.files.lock().take(number);
    drop(inherited);
    let file = handle_of(new.process.clone(), 0);
    let placeholder = thread.process.files.lock().put(number, file, true)?;
    drop(placeholder);
    thread.write(at, number as u32)
}

fn make(
    thread: &mut Thread,
    [flags, stack, parent_tid, child_tid, tls, handle_at]: Arguments,
    handle: Option<usize>,
) -> Answer {
    let flags = flags as u32;
    let has = |bits| flags & bits == bits;
    let lacks = |what, needed| has(what) && !has(needed);
    if flags & !FLAGS != 0
        || lacks(CLONE_THREAD, CLONE_SIGHAND)
        || lacks(CLONE_SIGHAND, CLONE_VM)
        || flags & CSIGNAL > 64
    {
        return Err(Errno::INVAL);
    }
    let is_lent = has(CLONE_VFORK);
    // Reserved first, because a thread that has been made has to start.
    let place = reserve()?;
    let mut new = if has(CLONE_THREAD) {
        super::thread::clone(thread)?
    } else {
        thread.fork(Shares {
            memory: has(CLONE_VM),
            is_lent,
            parent: has(CLONE_PARENT),
            exit_signal: flags & CSIGNAL,
        })?
    };
    if stack != 0 {
        new.frame.rsp = stack;
    }
    if has(CLONE_SETTLS) {
        new.thread_pointer = tls;
    }
    let tid = new.shared.tid();
    if has(CLONE_PARENT_SETTID) {
        // As on Linux, a failure to write is ignored.
        let _ = thread.write(parent_tid, tid);
    }
    if has(CLONE_CHILD_SETTID) {
        let _ = new.space.copy_out(child_tid, &tid.to_le_bytes());
    }
    if has(CLONE_CHILD_CLEARTID) {
        new.clear_tid = child_tid;
    }
    if let Some(number) = handle {
        // As above.
        let _ = put_handle(thread, &new, number, handle_at);
    }
    let child = new.process.clone();
    new.start(place, super::call);
    if is_lent && !has(CLONE_THREAD) {
        thread.lend_memory(&child);
    }
    Ok(tid as usize)
}

pub fn execve(thread: &mut Thread, [path, arguments, environment, ..]: Arguments) -> Answer {
    let path = thread.read_path(path)?;
    let limit = thread.process.limits.lock().get(RLIMIT_STACK as usize)?;
    let mut room = (limit.soft / STACK_PART).clamp(LEAST, MOST) as usize;
    let mut start = Start {
        arguments: texts(thread, arguments, &mut room)?,
        environment: texts(thread, environment, &mut room)?,
        path,
    };
    // Programs rely on having a name.
    if start.arguments.count == 0 {
        start.arguments.push(b"")?;
    }
    execute(thread, start)?;
    Ok(0)
}

/// The texts that a list of pointers leads to. Their bytes and those of the pointers are deducted
/// from `room`.
fn texts(thread: &Thread, list: usize, room: &mut usize) -> Result<Texts, Errno> {
    let mut texts = Texts::default();
    if list == 0 {
        return Ok(texts);
    }
    for index in 0.. {
        let text: usize = thread.read(list.wrapping_add(index * size_of::<usize>()))?;
        if text == 0 {
            break;
        }
        if thread.process.ending().is_some() {
            return Err(Errno::INTR);
        }
        let text = thread.read_text(text, TEXT).map_err(|errno| match errno {
            Errno::NAMETOOLONG => Errno::TOOBIG,
            other => other,
        })?;
        let bytes = text.len() + 1 + size_of::<usize>();
        *room = room.checked_sub(bytes).ok_or(Errno::TOOBIG)?;
        texts.push(&text)?;
    }
    Ok(texts)
}

/// Ends the thread.
pub fn exit(thread: &mut Thread, [code, ..]: Arguments) -> Answer {
    thread.exit(Status::exited(code));
    Ok(0)
}

/// Ends the process.
pub fn exit_group(thread: &mut Thread, [code, ..]: Arguments) -> Answer {
    thread.process.end(Status::exited(code));
    Ok(0)
}

pub fn wait4(thread: &mut Thread, [pid, status, options, usage, ..]: Arguments) -> Answer {
    let which = match pid as i32 {
        -1 => Which::Any,
        0 => Which::Group(thread.process.job.group()),
        i32::MIN => return Err(Errno::SRCH),
        pid if pid > 0 => Which::One(pid as u32),
        group => Which::Group(group.unsigned_abs()),
    };
    let options = options as u32;
    let known = WNOHANG | WUNTRACED | WCONTINUED | __WALL | __WCLONE | __WNOTHREAD;
    if options & !known != 0 {
        return Err(Errno::INVAL);
    }
    // `WUNTRACED` is called `WSTOPPED` elsewhere.
    let Some(news) = ask(thread, which, options | WEXITED)? else {
        return Ok(0);
    };
    if status != 0 {
        thread.write(status, news.status.0)?;
    }
    if usage != 0 {
        super::usage::tell(thread, usage, news.used)?;
    }
    Ok(news.pid as usize)
}

/// Waits for children, with the options of `waitid`.
pub fn ask(thread: &Thread, which: Which, options: u32) -> Result<Option<News>, Errno> {
    let has = |bit| options & bit != 0;
    let wanted = Wanted {
        which,
        only: (!has(__WALL)).then_some(!has(__WCLONE)),
        ends: has(WEXITED),
        stops: has(WSTOPPED),
        continuations: has(WCONTINUED),
        stays: has(WNOWAIT),
        waits: !has(WNOHANG),
    };
    thread.process.family.ask(&wanted, || thread.is_disturbed())
}

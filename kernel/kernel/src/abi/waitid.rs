//! Waiting for children, with the result as a `siginfo`.

use super::pidfd::process_of;
use super::{Answer, Arguments, Errno, process};
use crate::process::{News, Signal, Thread, Which};
use linux_raw_sys::general::*;

pub fn waitid(thread: &mut Thread, [kind, id, to, options, usage, _]: Arguments) -> Answer {
    let options = options as u32;
    let events = WEXITED | WSTOPPED | WCONTINUED;
    let known = events | WNOHANG | WNOWAIT | __WALL | __WCLONE | __WNOTHREAD;
    if options & !known != 0 || options & events == 0 {
        return Err(Errno::INVAL);
    }
    let mut is_hasty = false;
    let which = match (kind as u32, id as u32) {
        (P_ALL, _) => Which::Any,
        (P_PID, pid) if pid as i32 > 0 => Which::One(pid),
        (P_PGID, 0) => Which::Group(thread.process.job.group()),
        (P_PGID, group) if group as i32 > 0 => Which::Group(group),
        (P_PIDFD, fd) => {
            // Of a process that is no child there is no news.
            let process = process_of(thread, fd as usize).map_err(|errno| match errno {
                Errno::SRCH => Errno::CHILD,
                errno => errno,
            })?;
            is_hasty = !thread.file(fd as usize)?.is_blocking() && options & WNOHANG == 0;
            Which::One(process.pid)
        }
        _ => return Err(Errno::INVAL),
    };
    let options = if is_hasty { options | WNOHANG } else { options };
    let news = process::ask(thread, which, options);
    // Written also if there is no event: then all words are 0.
    if to != 0 {
        let news = news.ok().flatten();
        let words = news.map_or([0; WORDS], |News { pid, status, .. }| {
            let (code, status) = status.parts();
            [Signal::CHILD.number(), 0, code, 0, pid, 0, status]
        });
        let words = words.map(u32::to_le_bytes);
        thread.write_bytes(to, words.as_flattened())?;
    }
    match (usage, news?) {
        (_, None) if is_hasty => Err(Errno::AGAIN),
        (0, _) | (_, None) => Ok(0),
        (usage, Some(news)) => super::usage::tell(thread, usage, news.used),
    }
}

/// The first words of `siginfo`: signal, error, code, nothing, process, user, status.
const WORDS: usize = 7;

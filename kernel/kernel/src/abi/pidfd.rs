//! Processes as files.

use super::signal::{refuse, told};
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Open, OpenFile};
use crate::heap;
use crate::process::{Handle, Info, PROCESSES, Process, Signal, Thread};
use alloc::boxed::Box;
use alloc::sync::Arc;
use linux_raw_sys::general::{O_NONBLOCK, O_RDWR};

/// Makes a file for a process; it is closed by a new program.
pub fn add_handle(thread: &Thread, process: Arc<Process>, flags: u32) -> Answer {
    thread.add_file(handle_of(process, flags), true)
}

/// A file for a process.
pub fn handle_of(process: Arc<Process>, flags: u32) -> Arc<OpenFile> {
    let inode = Inode::new(Kind::Special(Box::new(Handle::new(process))), 0o600);
    OpenFile::new(Open::Inode(inode), O_RDWR | flags)
}

/// The process for which a descriptor stands.
pub fn process_of(thread: &Thread, fd: usize) -> Result<Arc<Process>, Errno> {
    let file = thread.file(fd)?;
    let handle: &Handle = file.special().ok_or(Errno::BADF)?;
    handle.process().cloned()
}

pub fn pidfd_open(thread: &mut Thread, [pid, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !O_NONBLOCK != 0 || pid as i32 <= 0 {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    let pid = pid as u32;
    let process = PROCESSES.get(pid).ok_or_else(|| {
        // A number of another thread than the first stands for no process.
        let is_thread = PROCESSES.all().any(|process| process.thread(pid).is_some());
        if is_thread { Errno::INVAL } else { Errno::SRCH }
    })?;
    add_handle(thread, process, flags)
}

pub fn pidfd_send_signal(thread: &mut Thread, [fd, signal, from, flags, ..]: Arguments) -> Answer {
    if flags as u32 != 0 {
        return Err(Errno::INVAL);
    }
    let process = process_of(thread, fd)?;
    refuse(thread, &process, signal)?;
    if signal == 0 {
        return Ok(0);
    }
    let info = match from {
        0 => Info::user(Signal::new(signal)?, &thread.process),
        from => {
            let number: u32 = thread.read(from)?;
            if number as usize != signal {
                return Err(Errno::INVAL);
            }
            told(thread, signal, from, process.pid)?
        }
    };
    process.send(info)?;
    Ok(0)
}

/// Gives the caller a descriptor of a file that another process has open.
pub fn pidfd_getfd(thread: &mut Thread, [fd, number, flags, ..]: Arguments) -> Answer {
    if flags as u32 != 0 {
        return Err(Errno::INVAL);
    }
    let process = process_of(thread, fd)?;
    thread.refuse_control(&process)?;
    let file = {
        let mut files = process.files.lock();
        files.get(number as u32 as usize)?.file.clone()
    };
    thread.add_file(file, true)
}

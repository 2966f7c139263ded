//! Signals as files.

use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Open, OpenFile, Signals};
use crate::heap;
use crate::process::{Set, Thread};
use alloc::boxed::Box;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDWR};

/// Bytes of a set of signals.
const SET: usize = 8;

pub fn signalfd(thread: &mut Thread, [fd, set, bytes, ..]: Arguments) -> Answer {
    signalfd4(thread, [fd, set, bytes, 0, 0, 0])
}

/// Makes a file for signals, or changes the signals of one.
pub fn signalfd4(thread: &mut Thread, [fd, set, bytes, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 || bytes != SET {
        return Err(Errno::INVAL);
    }
    let wanted = Set(thread.read(set)?).maskable().0;
    if fd as i32 != -1 {
        let file = thread.file(fd)?;
        let signals: &Signals = file.special().ok_or(Errno::INVAL)?;
        signals.set(wanted);
        return Ok(fd as u32 as usize);
    }
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    let inode = Inode::new(Kind::Special(Box::new(Signals::new(wanted))), 0o600);
    let file = OpenFile::new(Open::Inode(inode), O_RDWR | flags & O_NONBLOCK);
    thread.add_file(file, flags & O_CLOEXEC != 0)
}

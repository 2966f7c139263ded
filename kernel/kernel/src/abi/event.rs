//! Counters as files.

use super::{Answer, Arguments, Errno};
use crate::fs::{Event, Inode, Kind, Open, OpenFile};
use crate::heap;
use crate::process::Thread;
use linux_raw_sys::general::{EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE, O_RDWR};

pub fn eventfd(thread: &mut Thread, [count, ..]: Arguments) -> Answer {
    eventfd2(thread, [count, 0, 0, 0, 0, 0])
}

pub fn eventfd2(thread: &mut Thread, [count, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE) != 0 {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    let event = Event::new(u64::from(count as u32), flags & EFD_SEMAPHORE != 0)?;
    let inode = Inode::new(Kind::Event(event), 0o600);
    let file = OpenFile::new(Open::Inode(inode), O_RDWR | flags & EFD_NONBLOCK);
    thread.add_file(file, flags & EFD_CLOEXEC != 0)
}

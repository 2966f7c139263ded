//! Watches of files.

use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Notices, Open, OpenFile};
use crate::heap;
use crate::process::Thread;
use crate::users::READ;
use alloc::boxed::Box;
use linux_raw_sys::general::*;

pub fn inotify_init(thread: &mut Thread, _: Arguments) -> Answer {
    inotify_init1(thread, [0; 6])
}

pub fn inotify_init1(thread: &mut Thread, [flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NOMEM);
    }
    let inode = Inode::new(Kind::Special(Box::new(Notices::new()?)), 0o600);
    let file = OpenFile::new(Open::Inode(inode), O_RDONLY | flags & O_NONBLOCK);
    thread.add_file(file, flags & O_CLOEXEC != 0)
}

pub fn inotify_add_watch(thread: &mut Thread, [fd, path, mask, ..]: Arguments) -> Answer {
    let mask = mask as u32;
    let known = IN_ALL_EVENTS
        | IN_ONLYDIR
        | IN_DONT_FOLLOW
        | IN_EXCL_UNLINK
        | IN_MASK_CREATE
        | IN_MASK_ADD
        | IN_ISDIR
        | IN_ONESHOT
        | IN_UNMOUNT
        | IN_Q_OVERFLOW
        | IN_IGNORED;
    let adds = IN_MASK_ADD | IN_MASK_CREATE;
    if mask & known == 0 || mask & adds == adds {
        return Err(Errno::INVAL);
    }
    let file = thread.file(fd)?;
    let notices: &Notices = file.special().ok_or(Errno::INVAL)?;
    let flags = if mask & IN_DONT_FOLLOW != 0 {
        AT_SYMLINK_NOFOLLOW
    } else {
        0
    };
    let inode = thread.inode_at(HERE, path, flags)?;
    if mask & IN_ONLYDIR != 0 {
        inode.directory()?;
    }
    // A file of watches that watched itself would stay for ever.
    if matches!(inode.kind, Kind::Special(_)) {
        return Err(Errno::PERM);
    }
    inode.refuse(READ)?;
    Ok(notices.watch(&inode, mask)? as usize)
}

pub fn inotify_rm_watch(thread: &mut Thread, [fd, number, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let notices: &Notices = file.special().ok_or(Errno::INVAL)?;
    notices.forget(number as i32)?;
    Ok(0)
}

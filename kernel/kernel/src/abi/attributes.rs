//! Names and attributes of files: links, owners, times; locks on whole files.

use super::names::{HERE, LINK};
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, find, find_parent, now};
use crate::process::Thread;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use linux_raw_sys::general::*;

const SECOND: u64 = 1_000_000_000;

pub fn link(thread: &mut Thread, [from, to, ..]: Arguments) -> Answer {
    linkat(thread, [HERE, from, HERE, to, 0, 0])
}

pub fn linkat(thread: &mut Thread, [from_at, from, to_at, to, flags, _]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    let inode = inode_at(thread, from_at, from, flags & AT_EMPTY_PATH | flip(flags))?;
    if matches!(inode.kind, Kind::Directory(_)) {
        return Err(Errno::PERM);
    }
    if matches!(inode.kind, Kind::Report(_)) {
        return Err(Errno::XDEV);
    }
    let names = thread.read_path(to)?;
    let (parent, name) = find_parent(&thread.path_at(to_at, &names)?)?;
    inode.attributes.change();
    parent.directory()?.add(&name, inode)?;
    Ok(0)
}

/// `AT_SYMLINK_NOFOLLOW`, unless `AT_SYMLINK_FOLLOW` is set.
fn flip(flags: u32) -> u32 {
    match flags & AT_SYMLINK_FOLLOW {
        0 => AT_SYMLINK_NOFOLLOW,
        _ => 0,
    }
}

/// The inode at a path from an open directory on; with `AT_EMPTY_PATH` the open file's own.
fn inode_at(thread: &Thread, at: usize, path: usize, flags: u32) -> Result<Arc<Inode>, Errno> {
    let names = thread.read_path(path)?;
    if names.is_empty() && flags & AT_EMPTY_PATH != 0 {
        return Ok(thread.file(at)?.inode()?.clone());
    }
    let follow = flags & AT_SYMLINK_NOFOLLOW == 0;
    find(&thread.path_at(at, &names)?, follow)
}

pub fn chown(thread: &mut Thread, [path, user, group, ..]: Arguments) -> Answer {
    fchownat(thread, [HERE, path, user, group, 0, 0])
}

pub fn lchown(thread: &mut Thread, [path, user, group, ..]: Arguments) -> Answer {
    fchownat(thread, [HERE, path, user, group, LINK, 0])
}

pub fn fchownat(thread: &mut Thread, [at, path, user, group, flags, _]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    own(&*inode_at(thread, at, path, flags)?, user, group)
}

pub fn fchown(thread: &mut Thread, [fd, user, group, ..]: Arguments) -> Answer {
    own(thread.file(fd)?.inode()?, user, group)
}

/// Gives an inode to others; the largest number leaves it.
fn own(inode: &Inode, user: usize, group: usize) -> Answer {
    let set = |value: &AtomicU32, to: usize| {
        if to as u32 != u32::MAX {
            value.store(to as u32, Ordering::Relaxed);
        }
    };
    set(&inode.attributes.user, user);
    set(&inode.attributes.group, group);
    inode.attributes.change();
    Ok(0)
}

pub fn fchmod(thread: &mut Thread, [fd, mode, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    change_mode(file.inode()?, mode)
}

pub fn fchmodat(thread: &mut Thread, [at, path, mode, ..]: Arguments) -> Answer {
    change_mode(&*inode_at(thread, at, path, 0)?, mode)
}

fn change_mode(inode: &Inode, mode: usize) -> Answer {
    inode.mode.store(mode as u32 & 0o7777, Ordering::Relaxed);
    inode.attributes.change();
    Ok(0)
}

/// Without a path, the open file itself.
pub fn utimensat(thread: &mut Thread, [at, path, times, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    let now = now();
    let times = match times {
        0 => [Some(now); 2],
        times => {
            let second = times + size_of::<timespec>();
            [
                moment(thread.read(times)?, now)?,
                moment(thread.read(second)?, now)?,
            ]
        }
    };
    let inode = match path {
        0 => thread.file(at)?.inode()?.clone(),
        path => inode_at(thread, at, path, flags)?,
    };
    let attributes = &inode.attributes;
    for (time, place) in times
        .iter()
        .zip([&attributes.accessed, &attributes.modified])
    {
        if let Some(time) = time {
            place.store(*time, Ordering::Relaxed);
        }
    }
    attributes.change();
    Ok(0)
}

/// The time to set; nothing if the old one stays. Times before 1970 are 1970.
fn moment(time: timespec, now: u64) -> Result<Option<u64>, Errno> {
    match (time.tv_nsec as u32, u64::try_from(time.tv_nsec)) {
        (UTIME_NOW, _) => Ok(Some(now)),
        (UTIME_OMIT, _) => Ok(None),
        (_, Ok(rest)) if rest < SECOND => {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Ok(Some(seconds.saturating_mul(SECOND).saturating_add(rest)))
        }
        _ => Err(Errno::INVAL),
    }
}

pub fn flock(thread: &mut Thread, [fd, operation, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let flock = &file.inode()?.flock;
    let waits = operation as u32 & LOCK_NB == 0;
    match operation as u32 & !LOCK_NB {
        LOCK_UN => flock.give_back(&file),
        how @ (LOCK_SH | LOCK_EX) => {
            file.has_flock.store(true, Ordering::Relaxed);
            flock.take(&file, how == LOCK_EX, waits)?;
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

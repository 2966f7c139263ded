//! Names and attributes of files: links, owners, times; locks on whole files.

use super::names::{HERE, LINK};
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Place, caller, now};
use crate::process::Thread;
use crate::users::WRITE;
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
    let inode = thread.inode_at(from_at, from, flags & AT_EMPTY_PATH | flip(flags))?;
    let names = thread.read_path(to)?;
    let place = Place::of(&thread.path_at(to_at, &names)?)?;
    place.add(false, || {
        match &inode.kind {
            Kind::Directory(_) => return Err(Errno::PERM),
            Kind::File(_) | Kind::Fifo(_) | Kind::Bound(_) | Kind::Device(_) | Kind::Link(_) => {}
            _ => return Err(Errno::XDEV),
        }
        let is_nameless = &inode.attributes.is_nameless;
        if inode.attributes.links.load(Ordering::Relaxed) == 0
            && !is_nameless.load(Ordering::Relaxed)
        {
            return Err(Errno::NOENT);
        }
        inode.attributes.change();
        Ok(inode.clone())
    })?;
    Ok(0)
}

/// `AT_SYMLINK_NOFOLLOW`, unless `AT_SYMLINK_FOLLOW` is set.
fn flip(flags: u32) -> u32 {
    match flags & AT_SYMLINK_FOLLOW {
        0 => AT_SYMLINK_NOFOLLOW,
        _ => 0,
    }
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
    own(&thread.inode_at(at, path, flags)?, user, group)
}

pub fn fchown(thread: &mut Thread, [fd, user, group, ..]: Arguments) -> Answer {
    own(thread.file(fd)?.inode(), user, group)
}

/// Sets an inode's owner and group; the largest number leaves them unchanged. Its owner may only
/// give it another of the own groups.
fn own(inode: &Arc<Inode>, user: usize, group: usize) -> Answer {
    let (caller, owned) = (caller(), inode.owned());
    let (user, group) = (user as u32, group as u32);
    let keeps_user = user == u32::MAX || user == owned.user && caller.owns(owned);
    let keeps_group = group == u32::MAX || caller.owns(owned) && caller.has_group(group);
    if caller.user.of_files != 0 && !(keeps_user && keeps_group) {
        return Err(Errno::PERM);
    }
    if !owned.is_directory && (user, group) != (u32::MAX, u32::MAX) {
        inode.drop_rights(owned.mode);
    }
    let set = |value: &AtomicU32, to: u32| {
        if to != u32::MAX {
            value.store(to, Ordering::Relaxed);
        }
    };
    set(&inode.attributes.user, user);
    set(&inode.attributes.group, group);
    inode.attributes.change();
    inode.happened(IN_ATTRIB);
    Ok(0)
}

pub fn fchmod(thread: &mut Thread, [fd, mode, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    change_mode(file.inode(), mode)
}

pub fn chmod(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    fchmodat(thread, [HERE, path, mode, 0, 0, 0])
}

pub fn fchmodat(thread: &mut Thread, [at, path, mode, ..]: Arguments) -> Answer {
    change_mode(&thread.inode_at(at, path, 0)?, mode)
}

/// The mode of a link cannot be changed.
pub fn fchmodat2(thread: &mut Thread, [at, path, mode, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    let inode = thread.inode_at(at, path, flags)?;
    match &inode.kind {
        Kind::Link(_) | Kind::Jump(_) => Err(Errno::OPNOTSUPP),
        _ => change_mode(&inode, mode),
    }
}

fn change_mode(inode: &Arc<Inode>, mode: usize) -> Answer {
    inode.refuse_others()?;
    let (caller, mut mode) = (caller(), mode as u32 & 0o7777);
    if caller.user.of_files != 0 && !caller.has_group(inode.owned().group) {
        mode &= !0o2000;
    }
    inode.mode.store(mode, Ordering::Relaxed);
    inode.attributes.change();
    inode.happened(IN_ATTRIB);
    Ok(0)
}

/// Without a path, changes the open file itself.
pub fn utimensat(thread: &mut Thread, [at, path, times, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    let now = now();
    let is_now = times == 0;
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
        0 => thread.file(at)?.inode().clone(),
        path => thread.inode_at(at, path, flags)?,
    };
    // Whoever may write a file may say that it was used now.
    match is_now {
        true => inode
            .refuse(WRITE)
            .or_else(|errno| match inode.refuse_others() {
                Ok(()) => Ok(()),
                Err(_) => Err(errno),
            })?,
        false => inode.refuse_others()?,
    }
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
    inode.happened(IN_ATTRIB);
    Ok(0)
}

/// The time to set; `None` if the old one stays. Times before 1970 become 1970.
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
    let flock = &file.inode().flock;
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

//! Space in files: sizes, files without a name, the amounts of the file system.

use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Open, OpenFile, amounts, find};
use crate::process::{Thread, limits};
use alloc::sync::Arc;
use linux_raw_sys::general::*;
use machine::PAGE_SIZE;

pub fn truncate(thread: &mut Thread, [path, bytes, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.process.path(&names), true)?;
    match &inode.kind {
        Kind::File(_) => resize(&inode, bytes),
        Kind::Directory(_) => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

pub fn ftruncate(thread: &mut Thread, [fd, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    if !file.writes() {
        return Err(Errno::INVAL);
    }
    match file.inode() {
        Ok(inode) => resize(inode, bytes),
        Err(_) => Err(Errno::INVAL),
    }
}

fn resize(inode: &Inode, bytes: usize) -> Answer {
    if (bytes as i64) < 0 {
        return Err(Errno::INVAL);
    }
    let object = inode.object().ok_or(Errno::INVAL)?;
    limits::refuse_size(bytes as u64)?;
    object.set_size(bytes as u64)?;
    inode.attributes.modify();
    Ok(0)
}

/// Makes the file large enough and sees to it that there is memory for it. Nothing else is there.
pub fn fallocate(thread: &mut Thread, [fd, mode, offset, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let (offset, bytes) = (offset as i64, bytes as i64);
    if offset < 0 || bytes <= 0 {
        return Err(Errno::INVAL);
    }
    if !file.writes() {
        return Err(Errno::BADF);
    }
    let end = offset.checked_add(bytes).ok_or(Errno::FBIG)? as u64;
    let object = file.inode()?.object().ok_or(Errno::NODEV)?;
    if mode != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if bytes as u64 > amounts().free {
        return Err(Errno::NOSPC);
    }
    let before = object.size();
    if end > before {
        limits::refuse_size(end)?;
        object.set_size(end)?;
    }
    let first = offset as u64 / PAGE_SIZE as u64 * PAGE_SIZE as u64;
    for page in (first..end).step_by(PAGE_SIZE) {
        // A page that has been read has memory from now on.
        if object.read(page, &mut [0]).is_err() {
            if end > before {
                object.set_size(before)?;
            }
            return Err(Errno::NOSPC);
        }
    }
    file.inode()?.attributes.modify();
    Ok(0)
}

/// Files are in memory already: advice changes nothing.
pub fn fadvise64(thread: &mut Thread, [fd, _, bytes, advice, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    match advice as u32 {
        _ if file.pipe().is_some() => Err(Errno::SPIPE),
        _ if (bytes as i64) < 0 => Err(Errno::INVAL),
        POSIX_FADV_NORMAL..=POSIX_FADV_NOREUSE => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

/// A file without a name. There are no seals and no pages of other sizes.
pub fn memfd_create(thread: &mut Thread, [name, flags, ..]: Arguments) -> Answer {
    /// The most bytes of a name, with its end.
    const NAME: usize = 250;
    let flags = flags as u32;
    let name = thread.read_text(name, NAME);
    name.map_err(|errno| match errno {
        Errno::NAMETOOLONG => Errno::INVAL,
        other => other,
    })?;
    if flags & !MFD_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let file = OpenFile::new(Open::Inode(Inode::file(0o777)?), O_RDWR);
    thread.add_file(file, flags & MFD_CLOEXEC != 0)
}

pub fn statfs(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    let names = thread.read_path(path)?;
    let inode = find(&thread.process.path(&names), true)?;
    tell(thread, &inode, to)
}

pub fn fstatfs(thread: &mut Thread, [fd, to, ..]: Arguments) -> Answer {
    let inode: Arc<Inode> = thread.file(fd)?.inode()?.clone();
    tell(thread, &inode, to)
}

fn tell(thread: &Thread, inode: &Inode, to: usize) -> Answer {
    // SAFETY: numbers, of which zero is one.
    let mut told: statfs64 = unsafe { core::mem::zeroed() };
    told.f_type = match &inode.kind {
        Kind::Report(_) => PROC_SUPER_MAGIC as _,
        _ => TMPFS_MAGIC as _,
    };
    let amounts = amounts();
    let page = PAGE_SIZE as u64;
    (told.f_bsize, told.f_frsize) = (page as _, page as _);
    told.f_blocks = (amounts.total / page) as _;
    told.f_bfree = (amounts.free / page) as _;
    told.f_bavail = told.f_bfree;
    told.f_namelen = NAME_MAX as _;
    thread.write(to, told)?;
    Ok(0)
}

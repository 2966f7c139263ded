//! Space in files: sizes, files without a name, the amounts of the file system.

use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Open, OpenFile, Writer};
use crate::heap;
use crate::proc::amounts;
use crate::process::{Thread, limits};
use crate::system::is_disturbed;
use crate::users::WRITE;
use alloc::sync::Arc;
use linux_raw_sys::general::*;
use machine::PAGE_SIZE;

pub fn truncate(thread: &mut Thread, [path, bytes, ..]: Arguments) -> Answer {
    if (bytes as i64) < 0 {
        return Err(Errno::INVAL);
    }
    let inode = thread.inode_at(HERE, path, 0)?;
    match &inode.kind {
        Kind::File(_) => {
            inode.refuse(WRITE)?;
            // A program that runs from the file needs its bytes.
            let _writer = Writer::new(&inode)?;
            resize(&inode, bytes)
        }
        Kind::Directory(_) => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

pub fn ftruncate(thread: &mut Thread, [fd, bytes, ..]: Arguments) -> Answer {
    if (bytes as i64) < 0 {
        return Err(Errno::INVAL);
    }
    let file = thread.file(fd)?;
    if file.writes() {
        resize(file.inode(), bytes)
    } else {
        Err(Errno::INVAL)
    }
}

fn resize(inode: &Arc<Inode>, bytes: usize) -> Answer {
    inode.object().ok_or(Errno::INVAL)?;
    limits::refuse_size(bytes as u64)?;
    inode.resize(bytes as u64)?;
    Ok(0)
}

/// Makes the file large enough and allocates memory for it. No other mode is supported.
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
    let inode = file.seekable()?;
    let object = inode.object().ok_or(Errno::NODEV)?;
    if mode != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if bytes as u64 > amounts().free {
        return Err(Errno::NOSPC);
    }
    let _alone = inode.writing.lock();
    let before = object.size();
    if end > before {
        limits::refuse_size(end)?;
        object.set_size(end)?;
    }
    let first = offset as u64 / PAGE_SIZE as u64 * PAGE_SIZE as u64;
    for page in (first..end).step_by(PAGE_SIZE) {
        // Reading a page through the object allocates its memory.
        let read = if is_disturbed() {
            Err(Errno::INTR)
        } else {
            object.read(page, &mut [0]).map_err(|_| Errno::NOSPC)
        };
        if let Err(errno) = read {
            if end > before {
                object.set_size(before)?;
            }
            return Err(errno);
        }
    }
    inode.attributes.modify();
    Ok(0)
}

/// Does nothing: files are in memory already.
pub fn fadvise64(thread: &mut Thread, [fd, _, bytes, advice, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    match advice as u32 {
        _ if file.pipe().is_some() => Err(Errno::SPIPE),
        _ if (bytes as i64) < 0 => Err(Errno::INVAL),
        POSIX_FADV_NORMAL..=POSIX_FADV_NOREUSE => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

/// Creates a file without a name. Seals and pages of other sizes are not supported.
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
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    let inode = Inode::file(0o777)?;
    let writer = Writer::new(&inode)?;
    let file = OpenFile::with_writer(Open::Inode(inode), O_RDWR, Some(writer));
    thread.add_file(file, flags & MFD_CLOEXEC != 0)
}

pub fn statfs(thread: &mut Thread, [path, to, ..]: Arguments) -> Answer {
    let inode = thread.inode_at(HERE, path, 0)?;
    tell(thread, &inode, to)
}

pub fn fstatfs(thread: &mut Thread, [fd, to, ..]: Arguments) -> Answer {
    let file = thread.file_or_place(fd)?;
    tell(thread, file.inode(), to)
}

fn tell(thread: &Thread, inode: &Inode, to: usize) -> Answer {
    // SAFETY: all fields are numbers, and zero is a valid one.
    let mut told: statfs64 = unsafe { core::mem::zeroed() };
    told.f_type = match &inode.kind {
        Kind::Report(_) => PROC_SUPER_MAGIC as _,
        Kind::Directory(it) if !it.is_stored() => PROC_SUPER_MAGIC as _,
        Kind::Fifo(it) if !it.is_named() => PIPEFS_MAGIC as _,
        Kind::Socket(_) => SOCKFS_MAGIC as _,
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

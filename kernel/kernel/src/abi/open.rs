//! Opening files by their paths.

use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{Device, Inode, Kind, Last, Open, OpenFile, Path, Place, Writer, find};
use crate::heap;
use crate::process::Thread;
use crate::terminal::TERMINAL;
use crate::users::{READ, WRITE};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::*;

/// The flags that an open file keeps.
const KEPT: u32 = O_ACCMODE | O_APPEND | O_NONBLOCK | O_PATH;
/// A file without a name, in a directory; `O_TMPFILE` without `O_DIRECTORY`.
const NAMELESS: u32 = O_TMPFILE & !O_DIRECTORY;

pub fn open(thread: &mut Thread, [path, flags, mode, ..]: Arguments) -> Answer {
    openat(thread, [HERE, path, flags, mode, 0, 0])
}

pub fn creat(thread: &mut Thread, [path, mode, ..]: Arguments) -> Answer {
    let flags = O_CREAT | O_WRONLY | O_TRUNC;
    openat(thread, [HERE, path, flags as usize, mode, 0, 0])
}

pub fn openat(thread: &mut Thread, [directory, path, flags, mode, ..]: Arguments) -> Answer {
    let mut flags = flags as u32;
    let names = thread.read_path(path)?;
    let path = thread.path_at(directory, &names)?;
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    if flags & O_PATH != 0 {
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    }
    let mode = thread.permissions(mode);
    let closes = flags & O_CLOEXEC != 0;
    let file = match () {
        () if flags & O_PATH != 0 => open_place(&path, flags)?,
        () if flags & NAMELESS != 0 => open_nameless(&path, flags, mode)?,
        () if flags & (O_CREAT | O_DIRECTORY) == O_CREAT | O_DIRECTORY => {
            return Err(Errno::INVAL);
        }
        () if flags & O_CREAT != 0 => {
            let (inode, is_new) = create(&path, flags, mode)?;
            match is_new {
                // A new file has nothing to truncate, and whoever makes it may use it.
                true => open_inode(thread, &inode, flags & !O_TRUNC)?,
                false => open_existing(thread, &inode, flags)?,
            }
        }
        () => open_existing(thread, &find(&path, flags & O_NOFOLLOW == 0)?, flags)?,
    };
    if flags & O_PATH == 0 {
        file.inode().happened(IN_OPEN);
    }
    thread.add_file(file, closes)
}

/// Opens a place in the file system, for paths and attributes only (`O_PATH`).
fn open_place(path: &Path, flags: u32) -> Result<Arc<OpenFile>, Errno> {
    let inode = find(path, flags & O_NOFOLLOW == 0)?;
    if flags & O_DIRECTORY != 0 {
        inode.directory()?;
    }
    Ok(OpenFile::new(Open::Inode(inode), flags & KEPT))
}

/// Makes and opens a file without a name.
fn open_nameless(path: &Path, flags: u32, mode: u32) -> Result<Arc<OpenFile>, Errno> {
    if flags & O_ACCMODE == O_RDONLY || flags & O_DIRECTORY == 0 || flags & O_CREAT != 0 {
        return Err(Errno::INVAL);
    }
    let directory = find(path, true)?;
    if !directory.directory()?.is_stored() {
        return Err(Errno::OPNOTSUPP);
    }
    directory.refuse_adding()?;
    let inode = Inode::file(mode)?;
    let may_get_one = flags & O_EXCL == 0;
    let is_nameless = &inode.attributes.is_nameless;
    is_nameless.store(may_get_one, Ordering::Relaxed);
    let writer = Writer::new(&inode)?;
    let flags = flags & KEPT;
    Ok(OpenFile::with_writer(
        Open::Inode(inode),
        flags,
        Some(writer),
    ))
}

/// The file at a path, and true if it was made because there was none.
fn create(path: &Path, flags: u32, mode: u32) -> Result<(Arc<Inode>, bool), Errno> {
    let mut place = Place::of(path)?;
    loop {
        if place.has_slash() && matches!(place.last(), Last::Name(_)) {
            return Err(Errno::ISDIR);
        }
        let found = match place.entry() {
            Err(Errno::NOENT) => match place.add(false, || Inode::file(mode)) {
                // Another task has created it first.
                Err(Errno::EXIST) => continue,
                made => return Ok((made?, true)),
            },
            found => found?,
        };
        if flags & O_EXCL != 0 {
            return Err(Errno::EXIST);
        }
        match &found.kind {
            Kind::Link(to) if flags & O_NOFOLLOW == 0 => place = place.through(to)?,
            Kind::Jump(jump) if flags & O_NOFOLLOW == 0 => return Ok((jump.to.clone(), false)),
            Kind::Directory(_) => return Err(Errno::ISDIR),
            _ => return Ok((found, false)),
        }
    }
}

/// Opens an inode that the caller may use so.
fn open_existing(thread: &Thread, inode: &Arc<Inode>, flags: u32) -> Result<Arc<OpenFile>, Errno> {
    let reads = flags & O_ACCMODE != O_WRONLY;
    let writes = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0;
    let wanted = if reads { READ } else { 0 } | if writes { WRITE } else { 0 };
    match &inode.kind {
        // That fails otherwise.
        Kind::Link(_) | Kind::Jump(_) => {}
        Kind::Directory(_) if writes => {}
        _ => inode.refuse(wanted)?,
    }
    open_inode(thread, inode, flags)
}

/// Opens an inode.
fn open_inode(thread: &Thread, inode: &Arc<Inode>, flags: u32) -> Result<Arc<OpenFile>, Errno> {
    let has = |bits| flags & bits == bits;
    let writes = flags & O_ACCMODE != O_RDONLY;
    let process = &thread.process;
    let mut writer = None;
    match &inode.kind {
        Kind::Link(_) | Kind::Jump(_) => return Err(Errno::LOOP),
        Kind::Directory(_) if writes || has(O_TRUNC) => return Err(Errno::ISDIR),
        Kind::Directory(_) => {}
        _ if has(O_DIRECTORY) => return Err(Errno::NOTDIR),
        Kind::Device(Device::Terminal) if !TERMINAL.is_of(process) => {
            return Err(Errno::NXIO);
        }
        Kind::Device(Device::Console) if !has(O_NOCTTY) => {
            // If a session has the terminal already, or the caller leads none, it is opened all the
            // same.
            let _ = TERMINAL.become_of(process);
        }
        // These cannot be opened again, for instance through `/proc`.
        Kind::Event(_)
        | Kind::Ticker(_)
        | Kind::Special(_)
        | Kind::Epoll(_)
        | Kind::Socket(_)
        | Kind::Bound(_) => {
            return Err(Errno::NXIO);
        }
        Kind::Fifo(fifo) => {
            let mode = flags & O_ACCMODE;
            let ends = [mode != O_WRONLY, mode != O_RDONLY];
            let end = fifo.open(inode, ends, !has(O_NONBLOCK))?;
            let flags = flags & (O_ACCMODE | O_NONBLOCK);
            return Ok(OpenFile::new(Open::Pipe(end), flags));
        }
        Kind::Report(_) if writes => return Err(Errno::ACCES),
        Kind::File(_) if writes || has(O_TRUNC) => {
            let new = Writer::new(inode)?;
            if has(O_TRUNC) {
                inode.resize(0)?;
                inode.attributes.modify();
            }
            writer = writes.then_some(new);
        }
        _ => {}
    }
    let what = Open::Inode(inode.clone());
    Ok(OpenFile::with_writer(what, flags & KEPT, writer))
}

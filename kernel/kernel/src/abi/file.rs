//! Open files, by their descriptors.

use super::{Answer, Arguments, Errno, records};
use crate::fs::{self, Inode, Kind, OpenFile};
use crate::heap;
use crate::process::{Info, PROCESSES, READY, Signal, Thread, group};
use crate::system::system;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use ipc::Pipe;
use ipc::pipe::{ATOMIC, Unresized};
use linux_raw_sys::general::*;
use machine::PAGE_SIZE;
use metal::Metal;

impl Thread {
    /// The open file that a descriptor leads to.
    ///
    /// # Errors
    /// If there is none, or it is only a place (`O_PATH`).
    pub fn file(&self, descriptor: usize) -> Result<Arc<OpenFile>, Errno> {
        let file = self.file_or_place(descriptor)?;
        if file.is_place() {
            Err(Errno::BADF)
        } else {
            Ok(file)
        }
    }

    /// The open file that a descriptor leads to, even if it is only a place.
    pub fn file_or_place(&self, descriptor: usize) -> Result<Arc<OpenFile>, Errno> {
        // A descriptor is 32 bits wide.
        let descriptor = descriptor as u32 as usize;
        let mut files = self.process.files.lock();
        Ok(files.get(descriptor)?.file.clone())
    }

    /// Gives an open file a descriptor.
    pub fn add_file(&self, file: Arc<OpenFile>, close_on_exec: bool) -> Answer {
        self.process.files.lock().add(file, close_on_exec, 0)
    }
}

/// Sends the signal for a broken pipe, if the answer is that error.
pub fn signal_if_broken(thread: &Thread, answer: Answer) -> Answer {
    if answer == Err(Errno::PIPE) {
        let info = Info::user(Signal::PIPE, &thread.process);
        // The thread exists, and this fails only for queued signals.
        let _ = thread.process.send_to(thread.shared.tid(), info);
    }
    answer
}

pub fn lseek(thread: &mut Thread, [fd, offset, whence, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let inode = file.seekable()?;
    if let Kind::Device(_) = inode.kind {
        return Ok(0);
    }
    let offset = offset as i64;
    let mut place = file.offset.lock();
    let base = match whence as u32 {
        SEEK_SET => 0,
        SEEK_CUR => *place as i64,
        SEEK_END => inode.object().map_or(0, |object| object.size() as i64),
        whence @ (SEEK_DATA | SEEK_HOLE) => {
            *place = edge(inode, offset, whence == SEEK_DATA)?;
            return Ok(*place as usize);
        }
        _ => return Err(Errno::INVAL),
    };
    let to = base.checked_add(offset).filter(|&to| to >= 0);
    *place = to.ok_or(Errno::INVAL)? as u64;
    Ok(*place as usize)
}

/// The first byte from `offset` on that is in a page that was written (`of_data`), or in one that
/// was not. The end of the file counts as a hole.
fn edge(inode: &Inode, offset: i64, of_data: bool) -> Result<u64, Errno> {
    let object = inode.object().ok_or(Errno::INVAL)?;
    let page = PAGE_SIZE as u64;
    let size = object.size();
    let offset = u64::try_from(offset).map_err(|_| Errno::NXIO)?;
    if offset >= size {
        return Err(Errno::NXIO);
    }
    let (first, end) = (offset / page, size.div_ceil(page));
    let found = if of_data {
        object.next_present(first..end).ok_or(Errno::NXIO)?
    } else {
        let is_hole = |index: &u64| object.next_present(*index..index + 1).is_none();
        (first..end).find(is_hole).unwrap_or(end)
    };
    Ok((found * page).clamp(offset, size))
}

pub fn close(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    close_one(thread, fd as u32 as usize)?;
    Ok(0)
}

fn close_one(thread: &Thread, number: usize) -> Result<(), Errno> {
    let closed = thread.process.files.lock().take(number)?;
    // After the lock is released.
    closed.file.closed_by(thread.process.pid);
    drop(closed);
    Ok(())
}

/// Flags of `close_range`.
const CLOSE_RANGE_UNSHARE: u32 = 1 << 1;
const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;

/// Closes descriptors, or marks them to be closed by a new program. All threads share their
/// descriptors, so only a process's only thread may ask for descriptors of its own, which it has
/// already.
pub fn close_range(thread: &mut Thread, [first, last, flags, ..]: Arguments) -> Answer {
    let (first, last, flags) = (first as u32 as usize, last as u32 as usize, flags as u32);
    let unshares = flags & CLOSE_RANGE_UNSHARE != 0;
    if first > last
        || flags & !(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) != 0
        || unshares && thread.process.threads.lock().len() > 1
    {
        return Err(Errno::INVAL);
    }
    let mut from = first;
    loop {
        let number = thread.process.files.lock().from(from);
        let Some(number) = number.filter(|&number| number <= last) else {
            return Ok(0);
        };
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            if let Ok(one) = thread.process.files.lock().get(number) {
                one.close_on_exec = true;
            }
        } else {
            // Another thread may have closed it meanwhile.
            let _ = close_one(thread, number);
        }
        from = number + 1;
    }
}

pub fn dup(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    thread.add_file(thread.file_or_place(fd)?, false)
}

pub fn dup2(thread: &mut Thread, [from, to, ..]: Arguments) -> Answer {
    let [from, to] = [from, to].map(|fd| fd as u32 as usize);
    let file = thread.file_or_place(from)?;
    if from != to {
        replace(thread, to, file, false)?;
    }
    Ok(to)
}

pub fn dup3(thread: &mut Thread, [from, to, flags, ..]: Arguments) -> Answer {
    let [from, to] = [from, to].map(|fd| fd as u32 as usize);
    if from == to || flags as u32 & !O_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let file = thread.file_or_place(from)?;
    replace(thread, to, file, flags as u32 != 0)?;
    Ok(to)
}

/// Gives a file a number, replacing the file that has it.
fn replace(thread: &Thread, to: usize, file: Arc<OpenFile>, closes: bool) -> Result<(), Errno> {
    let closed = thread.process.files.lock().put(to, file, closes)?;
    if let Some(closed) = closed {
        closed.file.closed_by(thread.process.pid);
    }
    Ok(())
}

pub fn fcntl(thread: &mut Thread, [fd, command, value, ..]: Arguments) -> Answer {
    let fd = fd as u32 as usize;
    let file = thread.file_or_place(fd)?;
    let of_place = matches!(
        command as u32,
        F_DUPFD | F_DUPFD_CLOEXEC | F_GETFD | F_SETFD | F_GETFL
    );
    if file.is_place() && !of_place {
        return Err(Errno::BADF);
    }
    match command as u32 {
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            let of_file = matches!(command as u32, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
            if of_file {
                file.has_flock.store(true, Ordering::Relaxed);
            }
            return records::control(thread, &file, command as u32, value);
        }
        F_GETOWN => return Ok(file.owner.load(Ordering::Relaxed) as usize),
        F_SETOWN => return set_owner(&file, value as i32),
        F_GETOWN_EX => {
            let owner = file.owner.load(Ordering::Relaxed);
            let kind = if owner < 0 { OF_GROUP } else { OF_PROCESS };
            return thread
                .write(value, [kind, owner.unsigned_abs()])
                .map(|()| 0);
        }
        F_SETOWN_EX => {
            return match thread.read::<[u32; 2]>(value)? {
                [OF_PROCESS, number @ ..=MOST_NUMBER] => set_owner(&file, number as i32),
                [OF_GROUP, number @ ..=MOST_NUMBER] => set_owner(&file, -(number as i32)),
                // Single threads own no files.
                _ => Err(Errno::INVAL),
            };
        }
        // The file system's lock comes before that of descriptors.
        F_SETFL if has_changes(&file) => {
            READY.watch(&file, value as u32 & FASYNC != 0)?;
        }
        F_GETPIPE_SZ | F_SETPIPE_SZ => {
            let (pipe, _) = file.pipe().ok_or(Errno::BADF)?;
            if command as u32 == F_SETPIPE_SZ {
                resize(pipe, value as u32)?;
            }
            return Ok(pipe.capacity());
        }
        _ => {}
    }
    let mut files = thread.process.files.lock();
    match command as u32 {
        F_DUPFD => files.add(file, false, value as u32 as usize),
        F_DUPFD_CLOEXEC => files.add(file, true, value as u32 as usize),
        F_GETFD => Ok(usize::from(files.get(fd)?.close_on_exec)),
        F_SETFD => {
            files.get(fd)?.close_on_exec = value as u32 & FD_CLOEXEC != 0;
            Ok(0)
        }
        F_GETFL => Ok(file.flags.load(Ordering::Relaxed) as usize),
        F_SETFL => {
            let changed = O_APPEND | O_NONBLOCK;
            let kept = file.flags.load(Ordering::Relaxed) & !changed;
            let flags = kept | value as u32 & changed;
            file.flags.store(flags, Ordering::Relaxed);
            Ok(0)
        }
        _ => Err(Errno::INVAL),
    }
}

/// The kinds of owners of a file, and their highest number.
const OF_PROCESS: u32 = 1;
const OF_GROUP: u32 = 2;
const MOST_NUMBER: u32 = i32::MAX as u32;

/// Returns true if the file becomes ready at times, so that its owner can get signals.
pub fn has_changes(file: &OpenFile) -> bool {
    file.pipe().is_some() || file.socket().is_some() || file.is_terminal()
}

/// Lets a process, or a group by its negative number, get signals when the file is ready.
pub fn set_owner(file: &OpenFile, owner: i32) -> Answer {
    let exists = match owner {
        0 => true,
        1.. => PROCESSES.get(owner as u32).is_some(),
        _ => group(owner.unsigned_abs()).next().is_some(),
    };
    if !exists {
        return Err(Errno::SRCH);
    }
    file.owner.store(owner, Ordering::Relaxed);
    Ok(0)
}

/// The most bytes that a pipe may be made to hold.
const LARGEST_PIPE: usize = 1 << 20;

/// Lets a pipe hold `bytes`, or the next larger size that pipes may have.
fn resize(pipe: &Pipe<Metal>, bytes: u32) -> Result<(), Errno> {
    let bytes = (bytes as usize).max(ATOMIC).next_power_of_two();
    if bytes > 1 << 31 {
        return Err(Errno::INVAL);
    }
    if bytes > LARGEST_PIPE {
        return Err(Errno::PERM);
    }
    if bytes > pipe.capacity() && heap::is_short() {
        return Err(Errno::NOMEM);
    }
    let resized = pipe.resize(&system().kernel, bytes);
    resized.map_err(|why| match why {
        Unresized::Full => Errno::BUSY,
        Unresized::NoMemory => Errno::NOMEM,
    })
}

pub fn pipe(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    pipe2(thread, [to, 0, 0, 0, 0, 0])
}

pub fn pipe2(thread: &mut Thread, [to, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NFILE);
    }
    add_two(thread, fs::pipe()?, flags, to)
}

/// Gives two new files descriptors, with the flags `O_CLOEXEC` and `O_NONBLOCK`, and writes their
/// numbers to `to`.
pub fn add_two(thread: &Thread, files: [Arc<OpenFile>; 2], flags: u32, to: usize) -> Answer {
    for file in &files {
        file.flags.fetch_or(flags & O_NONBLOCK, Ordering::Relaxed);
    }
    let closes = flags & O_CLOEXEC != 0;
    let [one, other] = files;
    let one = thread.add_file(one, closes)?;
    let told = thread.add_file(other, closes).and_then(|other| {
        let told = thread.write(to, (other << 32 | one) as u64);
        told.map_err(|errno| closing(thread, other, errno))
    });
    told.map_err(|errno| closing(thread, one, errno))?;
    Ok(0)
}

/// Closes a descriptor whose number nobody has learned, because of an error.
fn closing(thread: &Thread, number: usize, errno: Errno) -> Errno {
    // Another thread may have guessed the number, and closed it.
    let _ = close_one(thread, number);
    errno
}

pub fn fstat(thread: &mut Thread, [fd, to, ..]: Arguments) -> Answer {
    let file = thread.file_or_place(fd)?;
    thread.write(to, fs::stat(file.inode()))?;
    Ok(0)
}

/// Does nothing: files are only in memory.
pub fn fsync(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    match &thread.file(fd)?.inode().kind {
        Kind::File(_) => Ok(0),
        Kind::Directory(directory) if directory.is_stored() => Ok(0),
        _ => Err(Errno::INVAL),
    }
}

pub fn sync(_: &mut Thread, _: Arguments) -> Answer {
    Ok(0)
}

pub fn syncfs(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    thread.file(fd)?;
    Ok(0)
}

pub fn sync_file_range(thread: &mut Thread, [fd, from, bytes, flags, ..]: Arguments) -> Answer {
    const FLAGS: u32 =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    let file = thread.file(fd)?;
    let (from, bytes) = (from as i64, bytes as i64);
    let end = from.checked_add(bytes);
    if flags as u32 & !FLAGS != 0 || from < 0 || end.is_none_or(|end| end < from) {
        return Err(Errno::INVAL);
    }
    match &file.inode().kind {
        Kind::File(_) | Kind::Directory(_) => Ok(0),
        _ => Err(Errno::SPIPE),
    }
}

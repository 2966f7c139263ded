//! Open files, by their descriptors.

use super::{Answer, Arguments, Errno, records};
use crate::fs::{self, OpenFile};
use crate::heap;
use crate::process::{Info, Signal, Thread};
use crate::system::system;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use ipc::Pipe;
use ipc::pipe::{ATOMIC, Unresized};
use linux_raw_sys::general::*;
use metal::Metal;

/// The most bytes that are copied at once.
pub const CHUNK: usize = 64 << 10;
/// The most parts of a vector.
const PARTS: usize = 1024;

impl Thread {
    /// The open file that a descriptor leads to.
    pub fn file(&self, descriptor: usize) -> Result<Arc<OpenFile>, Errno> {
        let mut files = self.process.files.lock();
        Ok(files.get(descriptor)?.file.clone())
    }

    /// Gives an open file a descriptor.
    pub fn add_file(&self, file: Arc<OpenFile>, close_on_exec: bool) -> Answer {
        self.process.files.lock().add(file, close_on_exec, 0)
    }
}

/// Moves `bytes` in parts, by a buffer, until one fails or is cut short: how many have been moved. `part` is told how
/// many were before it.
fn transfer(bytes: usize, part: impl FnMut(usize, &mut [u8]) -> Answer) -> Answer {
    const FEW: usize = 128;
    match bytes {
        0..=FEW => in_parts(bytes, &mut [0; FEW][..bytes], part),
        _ => in_parts(bytes, &mut heap::buffer(bytes.min(CHUNK))?, part),
    }
}

fn in_parts(
    bytes: usize,
    buffer: &mut [u8],
    mut part: impl FnMut(usize, &mut [u8]) -> Answer,
) -> Answer {
    let mut done = 0;
    while done < bytes {
        let length = (bytes - done).min(buffer.len());
        let count = match part(done, &mut buffer[..length]) {
            Err(_) if done > 0 => break,
            count => count?,
        };
        done += count;
        // Less than requested: there is no more now.
        if count < length {
            break;
        }
    }
    Ok(done)
}

/// Reads to the thread's memory, by `read`.
fn transfer_in(
    thread: &Thread,
    to: usize,
    bytes: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> Answer,
) -> Answer {
    transfer(bytes, |done, part| {
        let count = read(done, part)?;
        thread.write_bytes(to + done, &part[..count])?;
        Ok(count)
    })
}

/// Writes from the thread's memory, by `write`.
fn transfer_out(
    thread: &Thread,
    from: usize,
    bytes: usize,
    mut write: impl FnMut(usize, &[u8]) -> Answer,
) -> Answer {
    transfer(bytes, |done, part| {
        thread.read_bytes(from + done, part)?;
        write(done, part)
    })
}

/// A broken pipe is a signal, too.
pub fn signal_if_broken(thread: &Thread, answer: Answer) -> Answer {
    if answer == Err(Errno::PIPE) {
        let info = Info::user(Signal::PIPE, &thread.process);
        // The thread is there, and one of these always finds room.
        let _ = thread.process.send_to(thread.shared.tid(), info);
    }
    answer
}

pub fn read(thread: &mut Thread, [fd, to, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    transfer_in(thread, to, bytes, |_, part| file.read(part))
}

pub fn write(thread: &mut Thread, [fd, from, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    if bytes == 0 {
        return file.write(&[]);
    }
    let written = transfer_out(thread, from, bytes, |_, part| file.write(part));
    signal_if_broken(thread, written)
}

pub fn pread(thread: &mut Thread, [fd, to, bytes, offset, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    transfer_in(thread, to, bytes, |done, part| {
        file.read_at((offset + done) as u64, part)
    })
}

pub fn pwrite(thread: &mut Thread, [fd, from, bytes, offset, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    transfer_out(thread, from, bytes, |done, part| {
        file.write_at((offset + done) as u64, part)
    })
}

/// The parts of a vector: address and bytes of each.
fn parts(thread: &Thread, at: usize, count: usize) -> Result<Vec<[usize; 2]>, Errno> {
    if count > PARTS {
        return Err(Errno::INVAL);
    }
    (0..count)
        .map(|index| thread.read(at + index * 16))
        .collect()
}

pub fn readv(thread: &mut Thread, [fd, at, count, ..]: Arguments) -> Answer {
    let mut done = 0;
    for [to, bytes] in parts(thread, at, count)? {
        let part = read(thread, [fd, to, bytes, 0, 0, 0]);
        match part {
            Err(_) if done > 0 => break,
            part => done += part?,
        }
        if part != Ok(bytes) {
            break;
        }
    }
    Ok(done)
}

/// The bytes of one call stay together, if they are not more than [`CHUNK`].
pub fn writev(thread: &mut Thread, [fd, at, count, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let parts = parts(thread, at, count)?;
    let total = parts
        .iter()
        .try_fold(0_usize, |sum, part| sum.checked_add(part[1]));
    let total = total.filter(|&total| isize::try_from(total).is_ok());
    if total.ok_or(Errno::INVAL)? > CHUNK {
        return write_apart(thread, fd, &parts);
    }
    let mut whole = Vec::new();
    for [from, bytes] in parts {
        let start = whole.len();
        whole.resize(start + bytes, 0);
        thread.read_bytes(from, &mut whole[start..])?;
    }
    let written = file.write(&whole);
    signal_if_broken(thread, written)
}

/// Writes part after part, up to the first of which not all is written.
fn write_apart(thread: &mut Thread, fd: usize, parts: &[[usize; 2]]) -> Answer {
    let mut done = 0;
    for &[from, bytes] in parts {
        match write(thread, [fd, from, bytes, 0, 0, 0]) {
            Err(_) if done > 0 => break,
            part => {
                let written = part?;
                done += written;
                if written < bytes {
                    break;
                }
            }
        }
    }
    Ok(done)
}

pub fn lseek(thread: &mut Thread, [fd, offset, whence, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let inode = file.inode()?;
    let mut place = file.offset.lock();
    let base = match whence as u32 {
        SEEK_SET => 0,
        SEEK_CUR => *place as i64,
        SEEK_END => inode.object().map_or(0, |object| object.size() as i64),
        _ => return Err(Errno::INVAL),
    };
    let to = base.checked_add(offset as i64).filter(|&to| to >= 0);
    *place = to.ok_or(Errno::INVAL)? as u64;
    Ok(*place as usize)
}

pub fn close(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    let closed = thread.process.files.lock().take(fd)?;
    // Behind the lock.
    closed.file.closed_by(thread.process.pid);
    drop(closed);
    Ok(0)
}

pub fn dup(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    thread.add_file(thread.file(fd)?, false)
}

pub fn dup2(thread: &mut Thread, [from, to, ..]: Arguments) -> Answer {
    let file = thread.file(from)?;
    if from != to {
        replace(thread, to, file, false)?;
    }
    Ok(to)
}

pub fn dup3(thread: &mut Thread, [from, to, flags, ..]: Arguments) -> Answer {
    if from == to || flags as u32 & !O_CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let file = thread.file(from)?;
    replace(thread, to, file, flags != 0)?;
    Ok(to)
}

/// Gives a file a number, in the place of the file that has it.
fn replace(thread: &Thread, to: usize, file: Arc<OpenFile>, closes: bool) -> Result<(), Errno> {
    let closed = thread.process.files.lock().put(to, file, closes)?;
    if let Some(closed) = closed {
        closed.file.closed_by(thread.process.pid);
    }
    Ok(())
}

pub fn fcntl(thread: &mut Thread, [fd, command, value, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    match command as u32 {
        F_GETLK | F_SETLK | F_SETLKW | F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW => {
            let of_file = matches!(command as u32, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
            if of_file {
                file.has_flock.store(true, Ordering::Relaxed);
            }
            return records::control(thread, &file, command as u32, value);
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
        F_DUPFD => files.add(file, false, value),
        F_DUPFD_CLOEXEC => files.add(file, true, value),
        F_GETFD => Ok(usize::from(files.get(fd)?.close_on_exec)),
        F_SETFD => {
            files.get(fd)?.close_on_exec = value as u32 & FD_CLOEXEC != 0;
            Ok(0)
        }
        F_GETFL => Ok(file.flags.load(Ordering::Relaxed) as usize),
        F_SETFL => {
            let changed = O_APPEND | O_NONBLOCK;
            let kept = file.flags.load(Ordering::Relaxed) & !changed;
            file.flags
                .store(kept | value as u32 & changed, Ordering::Relaxed);
            Ok(0)
        }
        _ => Err(Errno::INVAL),
    }
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
    let closes = flags & O_CLOEXEC != 0;
    let ends = fs::pipe()?;
    for end in &ends {
        end.flags.fetch_or(flags & O_NONBLOCK, Ordering::Relaxed);
    }
    let [reader, writer] = ends;
    let reader = thread.add_file(reader, closes)?;
    let writer = thread.add_file(writer, closes)?;
    thread.write(to, (writer << 32 | reader) as u64)?;
    Ok(0)
}

pub fn fstat(thread: &mut Thread, [fd, to, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    thread.write(to, fs::stat(&file.what))?;
    Ok(0)
}

/// Files are nowhere but in memory.
pub fn fsync(thread: &mut Thread, [fd, ..]: Arguments) -> Answer {
    thread.file(fd)?;
    Ok(0)
}

//! Locks on parts of files.

use super::{Answer, Errno};
use crate::fs::{OpenFile, Owner, Record};
use crate::process::Thread;
use alloc::sync::Arc;
use linux_raw_sys::general::*;

/// `struct flock`: kind and base, start, length, process.
type Words = [usize; 2];

/// The operations of `fcntl` on such a lock.
pub fn control(thread: &Thread, file: &Arc<OpenFile>, command: u32, at: usize) -> Answer {
    let [kind, start]: Words = thread.read(at)?;
    let [length, process]: Words = thread.read(at + size_of::<Words>())?;
    let of_file = matches!(command, F_OFD_GETLK | F_OFD_SETLK | F_OFD_SETLKW);
    if of_file && process as u32 != 0 {
        return Err(Errno::INVAL);
    }
    let owner = if of_file {
        Owner::File(Arc::as_ptr(file).addr())
    } else {
        Owner::Process(thread.process.pid)
    };
    let (how, whence) = (kind as u16, (kind >> 16) as u16);
    let (start, end) = part(file, u32::from(whence), start as i64, length as i64)?;
    let is_alone = u32::from(how) == F_WRLCK;
    let wanted = Record {
        owner,
        start,
        end,
        is_alone,
    };
    let records = &file.inode().records;
    if matches!(command, F_GETLK | F_OFD_GETLK) {
        return tell(thread, at, records.obstacle(&wanted));
    }
    match u32::from(how) {
        F_UNLCK => records.give_back(wanted)?,
        F_RDLCK if !file.reads() => return Err(Errno::BADF),
        F_WRLCK if !file.writes() => return Err(Errno::BADF),
        F_RDLCK | F_WRLCK => {
            let waits = matches!(command, F_SETLKW | F_OFD_SETLKW);
            records.take(wanted, waits)?;
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// The start and the end of the part; a length of 0 means no end.
fn part(file: &OpenFile, whence: u32, start: i64, length: i64) -> Result<(u64, u64), Errno> {
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => *file.offset.lock() as i64,
        SEEK_END => file.inode().object().map_or(0, |object| object.size()) as i64,
        _ => return Err(Errno::INVAL),
    };
    let first = base.checked_add(start).ok_or(Errno::OVERFLOW)?;
    let other = first.checked_add(length).ok_or(Errno::OVERFLOW)?;
    let (start, end) = (first.min(other), first.max(other));
    if start < 0 {
        return Err(Errno::INVAL);
    }
    let end = if length == 0 { u64::MAX } else { end as u64 };
    Ok((start as u64, end))
}

/// Writes the conflicting lock, or that there is none.
fn tell(thread: &Thread, at: usize, found: Option<Record>) -> Answer {
    let Some(found) = found else {
        thread.write_bytes(at, &(F_UNLCK as u16).to_le_bytes())?;
        return Ok(0);
    };
    let kind = if found.is_alone { F_WRLCK } else { F_RDLCK };
    let length = if found.end == u64::MAX {
        0
    } else {
        found.end - found.start
    };
    // An open file's lock belongs to no process.
    let process = match found.owner {
        Owner::Process(pid) => pid,
        Owner::File(_) => u32::MAX,
    };
    thread.write(at, [kind as usize, found.start as usize])?;
    let rest = at + size_of::<Words>();
    thread.write(rest, length)?;
    thread.write(rest + 8, process)?;
    Ok(0)
}

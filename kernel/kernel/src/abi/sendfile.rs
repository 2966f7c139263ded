//! Copying from file to file.

use super::file::signal_if_broken;
use super::{Answer, Arguments, Errno};
use crate::fs::{CHUNK, Kind, MOST_BYTES, OpenFile, refuse_area};
use crate::heap;
use crate::process::Thread;
use crate::system::{Lock, is_disturbed};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::O_APPEND;

/// The offset that a copy uses in a file.
enum Place {
    /// The file's own offset, which advances.
    There,
    /// This offset, which was read from an address, and is advanced there.
    At(u64, usize),
}

impl Place {
    /// The offset at an address, if that is not 0; otherwise the file's own.
    fn read(thread: &Thread, address: usize) -> Result<Self, Errno> {
        match address {
            0 => Ok(Place::There),
            address => Ok(Place::At(thread.read(address)?, address)),
        }
    }

    fn offset(&self, file: &OpenFile) -> u64 {
        match self {
            Place::There => *file.offset.lock(),
            Place::At(offset, _) => *offset,
        }
    }

    /// Advances the offset by `count` bytes from `first` on.
    fn moved(&self, thread: &Thread, offset: &Lock<u64>, first: u64, count: usize) -> Answer {
        let behind = first + count as u64;
        match self {
            Place::There => *offset.lock() = behind,
            Place::At(_, address) => thread.write(*address, behind)?,
        }
        Ok(count)
    }
}

/// Copies from a file, from its own offset on, or from the one at `offset`; that one is advanced.
pub fn sendfile(thread: &mut Thread, [to, from, offset, bytes, ..]: Arguments) -> Answer {
    let place = Place::read(thread, offset)?;
    let from = thread.file(from)?;
    if !from.reads() {
        return Err(Errno::BADF);
    }
    if matches!(place, Place::At(..)) {
        from.seekable()?;
    }
    // Not locked meanwhile: both may be the same file, and writing may take long.
    let first = place.offset(&from);
    refuse_area(first, bytes)?;
    let to = thread.file(to)?;
    if !to.writes() {
        return Err(Errno::BADF);
    }
    if to.flags.load(Ordering::Relaxed) & O_APPEND != 0 {
        return Err(Errno::INVAL);
    }
    match &from.inode().kind {
        Kind::File(_) | Kind::Report(_) => {}
        _ => return Err(Errno::INVAL),
    }
    let sent = copy(&from, first, bytes, |_, part| to.write(&mut &*part));
    let sent = signal_if_broken(thread, sent)?;
    place.moved(thread, &from.offset, first, sent)
}

/// Copies from file to file. Files cannot share pages instead.
pub fn copy_file_range(
    thread: &mut Thread,
    [from, from_offset, to, to_offset, bytes, flags]: Arguments,
) -> Answer {
    let [from, to] = [thread.file(from)?, thread.file(to)?];
    let [from_place, to_place] = [
        Place::read(thread, from_offset)?,
        Place::read(thread, to_offset)?,
    ];
    if flags != 0 {
        return Err(Errno::INVAL);
    }
    for file in [&from, &to] {
        match &file.inode().kind {
            Kind::File(_) => {}
            Kind::Directory(_) => return Err(Errno::ISDIR),
            _ => return Err(Errno::INVAL),
        }
    }
    if !from.reads() || !to.writes() || to.flags.load(Ordering::Relaxed) & O_APPEND != 0 {
        return Err(Errno::BADF);
    }
    let [first, second] = [from_place.offset(&from), to_place.offset(&to)];
    refuse_area(first, bytes)?;
    refuse_area(second, bytes)?;
    let is_one = Arc::ptr_eq(from.inode(), to.inode());
    if is_one && first.abs_diff(second) < bytes as u64 {
        return Err(Errno::INVAL);
    }
    let copied = copy(&from, first, bytes, |done, part| {
        to.write_at(second + done as u64, &mut &*part)
    })?;
    from_place.moved(thread, &from.offset, first, copied)?;
    to_place.moved(thread, &to.offset, second, copied)
}

/// Copies by calls of `write`, which gets the number of bytes copied before, until one call is cut
/// short.
fn copy(
    from: &OpenFile,
    first: u64,
    bytes: usize,
    mut write: impl FnMut(usize, &[u8]) -> Answer,
) -> Answer {
    let bytes = bytes.min(MOST_BYTES);
    let mut buffer = heap::buffer(bytes.min(CHUNK))?;
    let mut done = 0;
    while done < bytes && !(done > 0 && is_disturbed()) {
        let part = (bytes - done).min(CHUNK);
        let count = from.read_bytes(first + done as u64, &mut buffer[..part])?;
        if count == 0 {
            break;
        }
        match write(done, &buffer[..count]) {
            Err(_) if done > 0 => break,
            written => {
                let written = written?;
                done += written;
                // The source has ended, or the target has no room.
                if count < part || written < count {
                    break;
                }
            }
        }
    }
    Ok(done)
}

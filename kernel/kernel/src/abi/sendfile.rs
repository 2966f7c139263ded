//! Copying from file to file.

use super::file::{CHUNK, signal_if_broken};
use super::{Answer, Arguments, Errno};
use crate::fs::{Kind, OpenFile};
use crate::heap;
use crate::process::Thread;

/// The most bytes of a call, as on Linux.
const MOST: usize = 0x7fff_f000;

/// Copies from a file: from its own offset on, or from the one at `offset`, which is moved.
pub fn sendfile(thread: &mut Thread, [to, from, offset, bytes, ..]: Arguments) -> Answer {
    let (from, to) = (thread.file(from)?, thread.file(to)?);
    match &from.inode().map_err(|_| Errno::INVAL)?.kind {
        Kind::File(_) | Kind::Report(_) => {}
        _ => return Err(Errno::INVAL),
    }
    // A file that is sent to its own end has no other.
    let bytes = bytes.min(MOST);
    if !to.writes() {
        return Err(Errno::BADF);
    }
    if offset == 0 {
        // Not locked meanwhile: both may be one file, and writing may take long.
        let first = *from.offset.lock();
        let sent = send(&from, &to, first, bytes);
        *from.offset.lock() = first + sent.unwrap_or(0) as u64;
        return signal_if_broken(thread, sent);
    }
    let first: u64 = thread.read(offset)?;
    let sent = send(&from, &to, first, bytes);
    let sent = signal_if_broken(thread, sent)?;
    thread.write(offset, first + sent as u64)?;
    Ok(sent)
}

fn send(from: &OpenFile, to: &OpenFile, first: u64, bytes: usize) -> Answer {
    let mut buffer = heap::buffer(bytes.min(CHUNK))?;
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(CHUNK);
        let at = first.checked_add(done as u64).ok_or(Errno::INVAL)?;
        let count = from.read_at(at, &mut buffer[..part])?;
        match to.write(&buffer[..count]) {
            Err(_) if done > 0 => break,
            written => {
                let written = written?;
                done += written;
                // All that there is has been sent, or there is no room.
                if count < part || written < count {
                    break;
                }
            }
        }
    }
    Ok(done)
}

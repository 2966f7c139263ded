//! The entries of directories: listing and moving them.

use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{self, CHUNK, Inode, Last, Place, RENAMES, Rename, Spot, type_bits};
use crate::process::Thread;
use alloc::vec::Vec;
use linux_raw_sys::general::RENAME_NOREPLACE;

/// Fills the caller's buffer with entries: `.`, `..`, then names in their order. The file's offset
/// counts them; in a live directory it is a position.
pub fn getdents64(thread: &mut Thread, [fd, to, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let inode = file.inode();
    let directory = inode.directory()?;
    let bytes = bytes as u32 as usize;
    let mut offset = file.offset.lock();
    let mut listed = file.listed.lock();
    listed.before(*offset, directory, inode);
    let mut records = Vec::new();
    let room = records.try_reserve_exact(bytes.min(CHUNK));
    room.map_err(|_| Errno::NOMEM)?;
    loop {
        let before = listed.clone();
        let Some((name, entry)) = directory.next(inode, &mut listed) else {
            break;
        };
        if !add_record(&mut records, bytes.min(CHUNK), listed.count, &name, &entry) {
            *listed = before;
            if records.is_empty() {
                return Err(Errno::INVAL);
            }
            break;
        }
    }
    thread.write_bytes(to, &records)?;
    *offset = listed.count;
    Ok(records.len())
}

/// Adds a `struct linux_dirent64`, unless the records would be more than `most` bytes. Returns true
/// if it did. `next` is the offset after the entry.
fn add_record(records: &mut Vec<u8>, most: usize, next: u64, name: &[u8], entry: &Inode) -> bool {
    /// Bytes before the name: number, offset, length, kind.
    const HEAD: usize = 19;
    let length = (HEAD + name.len() + 1).next_multiple_of(8);
    let end = records.len() + length;
    if end > most {
        return false;
    }
    records.extend_from_slice(&entry.number.to_le_bytes());
    records.extend_from_slice(&next.to_le_bytes());
    records.extend_from_slice(&(length as u16).to_le_bytes());
    records.push((type_bits(entry) >> 12) as u8);
    records.extend_from_slice(name);
    records.resize(end, 0);
    true
}

pub fn rename(thread: &mut Thread, [from, to, ..]: Arguments) -> Answer {
    renameat2(thread, [HERE, from, HERE, to, 0, 0])
}

pub fn renameat(thread: &mut Thread, [from_at, from, to_at, to, ..]: Arguments) -> Answer {
    renameat2(thread, [from_at, from, to_at, to, 0, 0])
}

pub fn renameat2(thread: &mut Thread, [from_at, from, to_at, to, flags, _]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !RENAME_NOREPLACE != 0 {
        return Err(Errno::INVAL);
    }
    let [from, to] = [thread.read_path(from)?, thread.read_path(to)?];
    // One at a time, so that no directory gets inside itself.
    let alone = RENAMES.lock();
    let from = Place::of(&thread.path_at(from_at, &from)?)?;
    let to = Place::of(&thread.path_at(to_at, &to)?)?;
    let replaces = flags & RENAME_NOREPLACE == 0;
    let Last::Name(name) = from.last() else {
        return Err(Errno::BUSY);
    };
    let Last::Name(new_name) = to.last() else {
        return Err(if replaces { Errno::BUSY } else { Errno::EXIST });
    };
    let old = Spot {
        directory: from.directory(),
        name,
    };
    let new = Spot {
        directory: to.directory(),
        name: new_name,
    };
    let how = Rename {
        replaces,
        of_directory: from.has_slash() || to.has_slash(),
    };
    let replaced = fs::rename(&old, &new, how)?;
    for spot in [old, new] {
        spot.directory.attributes.modify();
    }
    drop(alone);
    drop(replaced);
    Ok(0)
}

//! The entries of directories: listing and moving them.

use super::names::HERE;
use super::{Answer, Arguments, Errno};
use crate::fs::{Inode, Kind, Listed, find_parent, type_bits};
use crate::process::Thread;
use crate::system::system;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux_raw_sys::general::RENAME_NOREPLACE;

/// Fills the caller's buffer with entries: `.`, `..`, then names in their order. The file's offset
/// counts them.
pub fn getdents64(thread: &mut Thread, [fd, to, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let inode = file.inode()?;
    let directory = inode.directory()?;
    let mut offset = file.offset.lock();
    let mut listed = file.listed.lock();
    if listed.count != *offset {
        *listed = Listed::default();
        while listed.count < *offset && directory.next(inode, &mut listed).is_some() {}
    }
    let mut records = Vec::new();
    loop {
        let before = listed.clone();
        let Some((name, entry)) = directory.next(inode, &mut listed) else {
            break;
        };
        if !add_record(&mut records, bytes, listed.count, &name, &entry) {
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

/// Adds `struct linux_dirent64`, unless the records would be more than `most` bytes; whether they
/// are not. `next` is the offset behind the entry.
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
    // One at a time: no directory comes to be inside of itself.
    let _alone = system().renames.lock();
    let (parent, name) = find_parent(&thread.path_at(from_at, &from)?)?;
    let (new_parent, new_name) = find_parent(&thread.path_at(to_at, &to)?)?;
    let source = parent.directory()?.get(&name).ok_or(Errno::NOENT)?;
    parent.directory()?.changeable()?;
    new_parent.directory()?.changeable()?;
    if matches!(source.kind, Kind::Directory(_)) && is_within(&new_parent, &source) {
        return Err(Errno::INVAL);
    }
    if let Some(target) = new_parent.directory()?.get(&new_name) {
        if flags & RENAME_NOREPLACE != 0 {
            return Err(Errno::EXIST);
        }
        if Arc::ptr_eq(&source, &target) {
            return Ok(0);
        }
        may_replace(&source, &target)?;
    }
    let moved = parent.directory()?.remove(&name, |_| Ok(()))?;
    if let Kind::Directory(directory) = &moved.kind {
        directory.set_parent(&new_parent);
    }
    let replaced = new_parent.directory()?.replace(&new_name, moved)?;
    drop(replaced);
    Ok(0)
}

/// Whether `directory` is `above`, or somewhere in it.
fn is_within(directory: &Arc<Inode>, above: &Arc<Inode>) -> bool {
    let mut here = directory.clone();
    while !Arc::ptr_eq(&here, above) {
        match here.directory().ok().and_then(|it| it.parent()) {
            Some(parent) if !Arc::ptr_eq(&parent, &here) => here = parent,
            _ => return false,
        }
    }
    true
}

/// A directory takes the place of an empty one only, anything else that of anything else.
fn may_replace(source: &Inode, target: &Inode) -> Result<(), Errno> {
    match (&source.kind, &target.kind) {
        (Kind::Directory(_), Kind::Directory(it)) if !it.is_empty() => Err(Errno::NOTEMPTY),
        (Kind::Directory(_), Kind::Directory(_)) => Ok(()),
        (Kind::Directory(_), _) => Err(Errno::NOTDIR),
        (_, Kind::Directory(_)) => Err(Errno::ISDIR),
        _ => Ok(()),
    }
}

//! Reading and writing open files, back and forthm one or several parts of the thread's memory.

use super::file::signal_if_broken;
use super::{Answer, Arguments, Errno};
use crate::fs::{MOST_BYTES, OpenFile, Source, Target};
use crate::heap;
use crate::process::Thread;
use alloc::vec::Vec;
use core::ops::Range;
use linux_raw_sys::general::*;
use machine::PageFault;

/// The most parts of a vector.
const PARTS: usize = 1024;

/// A part of the thread's memory.
#[derive(Clone, Copy, Default)]
pub struct Part {
    /// Its address.
    pub at: usize,
    /// Its length.
    pub bytes: usize,
}

/// Several parts of the thread's memory, accessed as one.
pub struct Parts<'a> {
    thread: &'a Thread,
    parts: &'a [Part],
    most: usize,
    /// The index of the part that was used last.
    last: usize,
    /// The number of bytes before that part.
    before: usize,
    /// The fault that ended a copy under locks.
    fault: Option<PageFault>,
}

impl<'a> Parts<'a> {
    /// These parts.
    ///
    /// # Errors
    /// If the number of bytes overflows. A call moves fewer.
    pub fn new(thread: &'a Thread, parts: &'a [Part]) -> Result<Self, Errno> {
        let mut sizes = parts.iter().map(|part| part.bytes);
        let most = sizes.try_fold(0, usize::checked_add);
        let most = most.filter(|&most| isize::try_from(most).is_ok());
        Ok(Parts {
            thread,
            parts,
            most: most.ok_or(Errno::INVAL)?,
            last: 0,
            before: 0,
            fault: None,
        })
    }

    /// The rest of the part that contains the byte `at`.
    fn rest(&mut self, at: usize) -> Part {
        if at < self.before {
            (self.last, self.before) = (0, 0);
        }
        while let Some(part) = self.parts.get(self.last) {
            let within = at - self.before;
            if within < part.bytes {
                return Part {
                    at: part.at.wrapping_add(within),
                    bytes: part.bytes - within,
                };
            }
            self.before += part.bytes;
            self.last += 1;
        }
        Part::default()
    }

    /// Calls `copy` for each part of the bytes from `at` on, until one is cut short; returns the
    /// number of bytes done.
    fn each(
        &mut self,
        at: usize,
        bytes: usize,
        mut copy: impl FnMut(&mut Self, usize, Range<usize>) -> usize,
    ) -> usize {
        let mut done = 0;
        while done < bytes {
            let part = self.rest(at + done);
            let end = (done + part.bytes).min(bytes);
            let count = copy(self, part.at, done..end);
            let is_cut = count < end - done || part.bytes == 0;
            done += count;
            if is_cut {
                break;
            }
        }
        done
    }
}

impl Target for Parts<'_> {
    fn most(&self) -> usize {
        self.most
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> usize {
        self.each(at, bytes.len(), |parts, to, part| {
            parts.thread.write_some(to, &bytes[part])
        })
    }

    fn put_at_once(&mut self, at: usize, bytes: &[u8]) -> bool {
        let done = self.each(
            at,
            bytes.len(),
            |parts, to, part| match metal::copy_to_user(&bytes[part.clone()], to) {
                Ok(()) => part.len(),
                Err(fault) => {
                    parts.fault = Some(fault);
                    0
                }
            },
        );
        done == bytes.len()
    }

    fn bring_in(&mut self) -> Result<(), Errno> {
        let fault = self.fault.take().ok_or(Errno::FAULT)?;
        self.thread.space.fault(fault).map_err(|_| Errno::FAULT)
    }
}

impl Source for Parts<'_> {
    fn most(&self) -> usize {
        self.most
    }

    fn get(&mut self, at: usize, to: &mut [u8]) -> usize {
        self.each(at, to.len(), |parts, from, part| {
            parts.thread.read_some(from, &mut to[part])
        })
    }
}

/// The offset in the file at which a call begins.
#[derive(Clone, Copy)]
enum From {
    /// The file's own offset.
    There,
    /// An offset that the caller gives.
    Place(u64),
}

fn read_parts(thread: &Thread, file: &OpenFile, parts: &[Part], from: From) -> Answer {
    let mut memory = Parts::new(thread, parts)?;
    match from {
        From::There => file.read(&mut memory),
        From::Place(offset) => file.read_at(offset, &mut memory),
    }
}

fn write_parts(thread: &Thread, file: &OpenFile, parts: &[Part], from: From) -> Answer {
    let mut memory = Parts::new(thread, parts)?;
    let written = match from {
        From::There => file.write(&mut memory),
        From::Place(offset) => file.write_at(offset, &mut memory),
    };
    signal_if_broken(thread, written)
}

/// An offset that a caller gives.
fn place(offset: usize) -> Result<From, Errno> {
    match i64::try_from(offset) {
        Ok(offset) => Ok(From::Place(offset as u64)),
        Err(_) => Err(Errno::INVAL),
    }
}

pub fn read(thread: &mut Thread, [fd, at, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    read_parts(thread, &file, &[Part { at, bytes }], From::There)
}

pub fn write(thread: &mut Thread, [fd, at, bytes, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    write_parts(thread, &file, &[Part { at, bytes }], From::There)
}

pub fn pread(thread: &mut Thread, [fd, at, bytes, offset, ..]: Arguments) -> Answer {
    let from = place(offset)?;
    let file = thread.file(fd)?;
    read_parts(thread, &file, &[Part { at, bytes }], from)
}

pub fn pwrite(thread: &mut Thread, [fd, at, bytes, offset, ..]: Arguments) -> Answer {
    let from = place(offset)?;
    let file = thread.file(fd)?;
    write_parts(thread, &file, &[Part { at, bytes }], from)
}

/// Reads a vector, limited to the bytes that a call may move.
pub fn vector(thread: &Thread, at: usize, count: usize) -> Result<Vec<Part>, Errno> {
    if count > PARTS {
        return Err(Errno::INVAL);
    }
    let mut left = MOST_BYTES;
    heap::collect((0..count).map(|index| {
        let [at, bytes]: [usize; 2] = thread.read(at.wrapping_add(index * 16))?;
        if isize::try_from(bytes).is_err() {
            return Err(Errno::INVAL);
        }
        let bytes = bytes.min(left);
        left -= bytes;
        Ok(Part { at, bytes })
    }))
}

pub fn readv(thread: &mut Thread, [fd, at, count, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let parts = vector(thread, at, count)?;
    read_parts(thread, &file, &parts, From::There)
}

pub fn writev(thread: &mut Thread, [fd, at, count, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    let parts = vector(thread, at, count)?;
    write_parts(thread, &file, &parts, From::There)
}

pub fn preadv(thread: &mut Thread, [fd, at, count, offset, ..]: Arguments) -> Answer {
    let from = place(offset)?;
    let file = thread.file(fd)?;
    let parts = vector(thread, at, count)?;
    read_parts(thread, &file, &parts, from)
}

pub fn pwritev(thread: &mut Thread, [fd, at, count, offset, ..]: Arguments) -> Answer {
    let from = place(offset)?;
    let file = thread.file(fd)?;
    let parts = vector(thread, at, count)?;
    write_parts(thread, &file, &parts, from)
}

/// The flags that are accepted: they have no effect on files in memory.
const FLAGS: u32 = RWF_HIPRI | RWF_DSYNC | RWF_SYNC;

/// Reads several parts from an offset on, or from the file's own for the offset -1.
pub fn preadv2(thread: &mut Thread, [fd, at, count, offset, high, flags]: Arguments) -> Answer {
    if flags as u32 & !FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    match offset {
        usize::MAX => readv(thread, [fd, at, count, 0, 0, 0]),
        _ => preadv(thread, [fd, at, count, offset, high, 0]),
    }
}

/// Writes several parts from an offset on, or from the file's own for the offset -1.
pub fn pwritev2(thread: &mut Thread, [fd, at, count, offset, high, flags]: Arguments) -> Answer {
    if flags as u32 & !FLAGS != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    match offset {
        usize::MAX => writev(thread, [fd, at, count, 0, 0, 0]),
        _ => pwritev(thread, [fd, at, count, offset, high, 0]),
    }
}

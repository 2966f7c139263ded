//! Reading and writing open files.
//!
//! A call moves bytes between a file and memory of the caller, which may not be mapped. It only
//! takes bytes from the file that it has copied to the memory: an offset advances by these, and a
//! pipe keeps the others. A call that waits does so once, for the first bytes, and returns with
//! what is available then.
//!
//! Locks: an open file's offset, then the inode's `writing`, held while one call writes, so that
//! the bytes of a write stay together, and the end to which they are appended is the end. The
//! caller's memory may be brought in meanwhile.

use super::event::BYTES;
use super::{Control, Device, Inode, Kind, OpenFile, Received};
use crate::errno::Errno;
use crate::heap;
use crate::system::{ObjectRef, is_disturbed, system};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use ipc::Pipe;
use ipc::pipe::ATOMIC;
use linux_raw_sys::general::{IN_ACCESS, IN_MODIFY, O_APPEND};
use machine::{Clock, PAGE_SIZE};
use metal::Metal;

/// The most bytes that are copied at once.
pub const CHUNK: usize = 64 << 10;
/// The most bytes of a call, as on Linux.
pub const MOST_BYTES: usize = 0x7fff_f000;
/// Up to this many bytes are copied without a buffer on the heap.
const FEW: usize = 128;

/// Memory that a read fills.
pub trait Target {
    /// The number of bytes that it takes.
    fn most(&self) -> usize;

    /// Copies to the bytes from `at` on; returns the number of bytes copied, which is less if
    /// memory is not mapped.
    fn put(&mut self, at: usize, bytes: &[u8]) -> usize;

    /// Copies to the bytes from `at` on under locks, without bringing in memory. Returns true if
    /// all was copied.
    fn put_at_once(&mut self, at: usize, bytes: &[u8]) -> bool;

    /// Brings in the memory for which the last [`Target::put_at_once`] did not wait.
    ///
    /// # Errors
    /// If there is none.
    fn bring_in(&mut self) -> Result<(), Errno>;
}

/// Memory that a write reads.
pub trait Source {
    /// The number of bytes that it has.
    fn most(&self) -> usize;

    /// Copies the bytes from `at` on; returns the number of bytes copied, which is less if memory
    /// is not mapped.
    fn get(&mut self, at: usize, to: &mut [u8]) -> usize;
}

impl Source for &[u8] {
    fn most(&self) -> usize {
        self.len()
    }

    fn get(&mut self, at: usize, to: &mut [u8]) -> usize {
        let count = to.len().min(self.len() - at);
        to[..count].copy_from_slice(&self[at..at + count]);
        count
    }
}

impl Target for &mut [u8] {
    fn most(&self) -> usize {
        self.len()
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> usize {
        self[at..at + bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    fn put_at_once(&mut self, at: usize, bytes: &[u8]) -> bool {
        self.put(at, bytes) == bytes.len()
    }

    fn bring_in(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// Fails if the bytes are beyond those that a file can have.
pub fn refuse_area(offset: u64, bytes: usize) -> Result<(), Errno> {
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else {
        return Err(Errno::INVAL);
    };
    match offset.checked_add(bytes) {
        None => Err(Errno::INVAL),
        Some(_) => Ok(()),
    }
}

/// Calls `step` with parts of a buffer, and the number of bytes before each, until `most` are done,
/// a step fails, or one is cut short. Returns the number of bytes done; an error counts only if
/// that is 0.
fn in_parts(
    most: usize,
    mut step: impl FnMut(usize, &mut [u8]) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let (mut few, mut many);
    let buffer = match most {
        0..=FEW => {
            few = [0; FEW];
            &mut few[..]
        }
        _ => {
            many = heap::buffer(most.min(CHUNK))?;
            &mut many[..]
        }
    };
    let mut done = 0;
    while done < most {
        let length = (most - done).min(buffer.len());
        let count = match step(done, &mut buffer[..length]) {
            Err(_) if done > 0 => break,
            count => count?,
        };
        done += count;
        if count < length {
            break;
        }
    }
    Ok(done)
}

/// A count of moved bytes; an error if there were some and none was moved.
fn moved(count: usize, of: usize) -> Result<usize, Errno> {
    match count {
        0 if of > 0 => Err(Errno::FAULT),
        count => Ok(count),
    }
}

/// The error of a call that would have to wait: it does not wait, or no longer.
pub fn unready(waits: bool) -> Errno {
    if waits { Errno::INTR } else { Errno::AGAIN }
}

/// How bytes are read from a pipe.
pub struct Reading<'a> {
    /// Called before each sleep: true if the call waits.
    pub waits: &'a dyn Fn() -> bool,
    /// True if it waits until the memory is full, and not only for the first byte.
    pub fills: bool,
    /// True if the bytes stay.
    pub peeks: bool,
}

/// Reads the available bytes of a pipe; 0 at its end. `None` if it would have to wait. `most` gets
/// the number of bytes read before, and returns how many may follow; `got` is told how many were
/// read, and returns true if no more may follow.
pub fn receive_from(
    pipe: &Pipe<Metal>,
    to: &mut dyn Target,
    how: &Reading,
    most: impl Fn(usize) -> usize,
    mut got: impl FnMut(usize) -> bool,
) -> Result<Option<usize>, Errno> {
    let (all, mut done) = (to.most(), 0);
    if all == 0 {
        return Ok(Some(0));
    }
    let kernel = &system().kernel;
    loop {
        let (mut at, mut is_away) = (done, false);
        let goes_on = || (how.fills || done == 0) && (how.waits)();
        let most = |before| most(before).min(all - done);
        let deliver = |part: &[u8]| {
            is_away = !to.put_at_once(at, part);
            at += part.len();
            !is_away
        };
        let read = match how.peeks {
            true => pipe.peek(kernel, most, goes_on, deliver),
            false => pipe.read_up_to(kernel, most, goes_on, deliver),
        };
        let count = match read {
            None if done == 0 => return Ok(None),
            read => read.unwrap_or(0),
        };
        done += count;
        let ends = count > 0 && got(count);
        match is_away.then(|| to.bring_in()) {
            Some(Err(errno)) if done == 0 => return Err(errno),
            Some(Ok(())) if how.peeks => done = 0,
            Some(Ok(())) if !ends => {}
            None if how.fills && !how.peeks && !ends && count > 0 && done < all => {}
            _ => return Ok(Some(done)),
        }
    }
}

/// Writes all to a pipe; what there is room for, if `waits` returns false. `at` is told where each
/// part begins among all bytes of the pipe, and how long it is.
///
/// # Errors
/// [`Errno::AGAIN`] if it would have to wait, [`Errno::PIPE`] if nobody reads.
pub fn send_to(
    pipe: &Pipe<Metal>,
    from: &mut dyn Source,
    waits: impl Fn() -> bool,
    mut at: impl FnMut(usize, usize),
) -> Result<usize, Errno> {
    in_parts(from.most().min(MOST_BYTES), |done, part| {
        let count = from.get(done, part);
        // As on Linux, nothing is written to a page if a part of its source is missing.
        let count = if count < part.len() {
            moved(count - count % ATOMIC, part.len())?
        } else {
            count
        };
        let written = pipe.write_at(&system().kernel, &part[..count], &waits, &mut at);
        match written.map_err(|_| Errno::PIPE)? {
            0 => Err(Errno::AGAIN),
            count => Ok(count),
        }
    })
}

/// How a socket receives.
#[derive(Clone, Copy, Default)]
pub struct Receiving {
    /// True if the call does not wait, whatever the file says.
    pub is_hasty: bool,
    /// True if it waits until the memory is full.
    pub fills: bool,
    /// True if what it receives stays.
    pub peeks: bool,
}

impl OpenFile {
    /// Receives from a socket; returns the number of bytes, 0 at the end.
    pub fn receive(
        &self,
        to: &mut dyn Target,
        how: Receiving,
        received: &mut Received,
    ) -> Result<usize, Errno> {
        let socket = self.socket().ok_or(Errno::NOTSOCK)?;
        let blocks = self.is_blocking() && !how.is_hasty;
        self.limited(0, || {
            let how = Reading {
                waits: &|| blocks && !is_disturbed(),
                fills: how.fills,
                peeks: how.peeks,
            };
            socket.receive(to, &how, blocks, received)
        })
    }

    /// Sends to the socket to which it is connected.
    pub fn send(
        &self,
        from: &mut dyn Source,
        control: Control,
        may_wait: bool,
    ) -> Result<usize, Errno> {
        let socket = self.socket().ok_or(Errno::NOTSOCK)?;
        let blocks = self.is_blocking() && may_wait;
        self.limited(1, || {
            socket.send(from, control, blocks, || blocks && !is_disturbed())
        })
    }

    /// Performs a call with the socket's limit for receiving (0) or sending (1).
    pub fn limited<R>(
        &self,
        which: usize,
        call: impl FnOnce() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let limit = self.socket().map_or(0, |socket| {
            socket.options.limits[which].load(Ordering::Relaxed)
        });
        if limit == 0 {
            return call();
        }
        let end = Metal::now().saturating_add(limit);
        let (mut call, mut result) = (Some(call), Err(Errno::INTR));
        system().kernel.caller.wait_until(end, &mut || {
            if let Some(call) = call.take() {
                result = call();
            }
        });
        match result {
            Err(Errno::INTR) if Metal::now() >= end => Err(Errno::AGAIN),
            result => result,
        }
    }

    /// Reads to the memory; returns the number of bytes, 0 at the end.
    pub fn read(&self, to: &mut dyn Target) -> Result<usize, Errno> {
        if !self.reads() {
            return Err(Errno::BADF);
        }
        let most = to.most();
        if self.socket().is_some() {
            let nothing = &mut Received::default();
            return self.receive(to, Receiving::default(), nothing);
        }
        if let Some((pipe, _)) = self.pipe() {
            let how = Reading {
                waits: &|| self.waits(),
                fills: false,
                peeks: false,
            };
            let read = receive_from(pipe, to, &how, |_| usize::MAX, |_| false)?;
            return read.ok_or_else(|| unready(self.is_blocking()));
        }
        match &self.inode().kind {
            kind @ (Kind::Event(_) | Kind::Ticker(_)) => {
                let mut number = [0; BYTES];
                let number = &mut number[..most.min(BYTES)];
                let read = match kind {
                    Kind::Ticker(ticker) => ticker.read(number, || self.waits()),
                    Kind::Event(event) => event.read(number, || self.waits()),
                    _ => Err(Errno::INVAL),
                };
                read?.ok_or_else(|| unready(self.is_blocking()))?;
                moved(to.put(0, number), BYTES)
            }
            Kind::Special(special) => special.read(to, self.is_blocking(), &|| self.waits()),
            Kind::Epoll(_) => Err(Errno::INVAL),
            Kind::Device(Device::Console | Device::Terminal) if most == 0 => Ok(0),
            Kind::Device(device @ (Device::Console | Device::Terminal)) => {
                let mut typed = heap::buffer(most.min(CHUNK))?;
                let count = device.read(&mut typed, self.is_blocking())?;
                moved(to.put(0, &typed[..count]), count)
            }
            _ => {
                let mut offset = self.offset.lock();
                let count = self.read_at(*offset, to)?;
                *offset += count as u64;
                drop(offset);
                if count > 0 {
                    self.inode().happened(IN_ACCESS);
                }
                Ok(count)
            }
        }
    }

    /// Reads from `offset` on, without changing the file's offset.
    pub fn read_at(&self, offset: u64, to: &mut dyn Target) -> Result<usize, Errno> {
        let most = to.most();
        self.seekable()?;
        refuse_area(offset, most)?;
        if most == 0 {
            return self.read_bytes(offset, &mut []);
        }
        in_parts(most.min(MOST_BYTES), |done, part| {
            self.may_go_on(done)?;
            let count = self.read_bytes(offset + done as u64, part)?;
            moved(to.put(done, &part[..count]), count)
        })
    }

    /// Fails if a signal is pending and `done` bytes are moved: only files have an end, so other
    /// calls must be interruptible.
    fn may_go_on(&self, done: usize) -> Result<(), Errno> {
        match &self.inode().kind {
            Kind::File(_) => Ok(()),
            _ if done > 0 && is_disturbed() => Err(Errno::INTR),
            _ => Ok(()),
        }
    }

    /// Reads to the kernel's memory.
    pub fn read_bytes(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        match &self.inode().kind {
            _ if !self.reads() => Err(Errno::BADF),
            Kind::File(object) => read_object(object, offset, to),
            Kind::Device(device) => device.read(to, self.is_blocking()),
            Kind::Report(report) => report.read_at(offset, to),
            Kind::Directory(_) => Err(Errno::ISDIR),
            Kind::Fifo(_)
            | Kind::Event(_)
            | Kind::Ticker(_)
            | Kind::Special(_)
            | Kind::Socket(_) => Err(Errno::SPIPE),
            Kind::Link(_) | Kind::Jump(_) | Kind::Epoll(_) | Kind::Bound(_) => Err(Errno::INVAL),
        }
    }

    /// Writes; returns the number of bytes.
    pub fn write(&self, from: &mut dyn Source) -> Result<usize, Errno> {
        if !self.writes() {
            return Err(Errno::BADF);
        }
        if self.socket().is_some() {
            return self.send(from, Control::default(), true);
        }
        if let Some((pipe, _)) = self.pipe() {
            let sent = send_to(pipe, from, || self.waits(), |_, _| ());
            return sent.map_err(|error| match error {
                Errno::AGAIN => unready(self.is_blocking()),
                error => error,
            });
        }
        match &self.inode().kind {
            Kind::Event(event) => {
                let mut number = [0; BYTES + 1];
                let count = from.most().min(number.len());
                let number = &mut number[..count];
                moved(from.get(0, number), count)?;
                let written = event.write(number, || self.waits())?;
                written.ok_or_else(|| unready(self.is_blocking()))
            }
            // The bytes are not read.
            Kind::Device(Device::Null | Device::Zero) => Ok(from.most().min(MOST_BYTES)),
            Kind::Device(device) if from.most() == 0 => device.write(&[]),
            Kind::Device(device) => in_parts(from.most().min(MOST_BYTES), |done, part| {
                self.may_go_on(done)?;
                let count = moved(from.get(done, part), part.len())?;
                device.write(&part[..count])
            }),
            Kind::File(_) => {
                let mut offset = self.offset.lock();
                refuse_area(*offset, from.most())?;
                let (start, count) = self.write_file(*offset, from)?;
                if count > 0 {
                    *offset = start + count as u64;
                }
                Ok(count)
            }
            _ => Err(Errno::INVAL),
        }
    }

    /// Writes from `offset` on, or at the end if it appends, without changing the file's offset.
    pub fn write_at(&self, offset: u64, from: &mut dyn Source) -> Result<usize, Errno> {
        self.seekable()?;
        refuse_area(offset, from.most())?;
        match &self.inode().kind {
            Kind::File(_) if self.writes() => Ok(self.write_file(offset, from)?.1),
            _ => self.write(from),
        }
    }

    /// Writes to a file; returns where it began, and the number of bytes.
    fn write_file(&self, offset: u64, from: &mut dyn Source) -> Result<(u64, usize), Errno> {
        let inode = self.inode();
        let object = inode.object().ok_or(Errno::INVAL)?;
        let most = from.most().min(MOST_BYTES);
        if most == 0 {
            return Ok((offset, 0));
        }
        let alone = inode.writing.lock();
        let appends = self.flags.load(Ordering::Relaxed) & O_APPEND != 0;
        let start = if appends { object.size() } else { offset };
        let most = system().kernel.caller.room(start, most)?;
        let count = in_parts(most, |done, part| {
            let count = moved(from.get(done, part), part.len())?;
            Ok(object.write(start + done as u64, &part[..count])?)
        })?;
        inode.attributes.modify();
        drop(alone);
        inode.happened(IN_MODIFY);
        Ok((start, count))
    }
}

impl Inode {
    /// Makes the file `size` bytes large.
    pub fn resize(self: &Arc<Self>, size: u64) -> Result<(), Errno> {
        let object = self.object().ok_or(Errno::INVAL)?;
        let alone = self.writing.lock();
        if object.size() != size {
            object.set_size(size)?;
            self.attributes.modify();
            drop(alone);
            self.happened(IN_MODIFY);
        }
        Ok(())
    }
}

/// Reads an object. A page that was never written reads as zero, and gets no memory.
fn read_object(object: &ObjectRef, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
    let inside = object.size().saturating_sub(offset).min(to.len() as u64) as usize;
    let page = PAGE_SIZE as u64;
    let mut done = 0;
    while done < inside {
        let at = offset + done as u64;
        let pages = at / page..(offset + inside as u64).div_ceil(page);
        let index = pages.start;
        let present = object.next_present(pages).unwrap_or(u64::MAX / page);
        if present > index {
            let hole = (present * page - at).min((inside - done) as u64) as usize;
            to[done..done + hole].fill(0);
            done += hole;
            continue;
        }
        let part = ((index + 1) * page - at).min((inside - done) as u64) as usize;
        let count = match object.read(at, &mut to[done..done + part]) {
            Err(_) if done > 0 => break,
            count => count?,
        };
        done += count;
        if count < part {
            break;
        }
    }
    Ok(done)
}

//! Moving bytes between pipes and other files. They are copied, since pipes contain no pages.
//!
//! A call finds out how much room there is before it takes bytes, so that none is lost. If another
//! writer is faster, the bytes wait for room.

use super::file::signal_if_broken;
use super::transfer::{Parts, vector};
use super::{Answer, Arguments, Errno};
use crate::fs::{
    CHUNK, Kind, OpenFile, Reading, Received, Receiving, receive_from, send_to, unready,
};
use crate::heap;
use crate::process::Thread;
use crate::system::{is_disturbed, system};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use ipc::{End, Pipe, poll_changes};
use linux_raw_sys::general::{
    O_APPEND, SPLICE_F_GIFT, SPLICE_F_MORE, SPLICE_F_MOVE, SPLICE_F_NONBLOCK,
};
use metal::Metal;

const FLAGS: u32 = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

/// A file, and the offset in it at which a call begins, if the caller gives one.
struct Place {
    file: Arc<OpenFile>,
    /// The address of the offset; 0 for the file's own.
    at: usize,
    offset: Option<u64>,
}

impl Place {
    fn read(thread: &Thread, fd: usize, at: usize) -> Result<Self, Errno> {
        let file = thread.file(fd)?;
        if at == 0 {
            return Ok(Place {
                file,
                at,
                offset: None,
            });
        }
        file.seekable()?;
        let offset: u64 = thread.read(at)?;
        i64::try_from(offset).map_err(|_| Errno::INVAL)?;
        Ok(Place {
            file,
            at,
            offset: Some(offset),
        })
    }

    /// Writes the offset back.
    fn finish(&self, thread: &Thread) -> Result<(), Errno> {
        self.offset
            .map_or(Ok(()), |offset| thread.write(self.at, offset))
    }

    /// Reads available bytes; the first ones may be waited for.
    fn get(&mut self, to: &mut [u8], waits: bool) -> Answer {
        let file = &self.file;
        let mut to = to;
        if let Some((pipe, _)) = file.pipe() {
            let how = reading(&waits);
            let read = receive_from(pipe, &mut to, &how, |_| usize::MAX, |_| false)?;
            return read.ok_or_else(|| unready(waits));
        }
        if file.socket().is_some() {
            let how = Receiving {
                is_hasty: !waits,
                ..Receiving::default()
            };
            return file.receive(&mut to, how, &mut Received::default());
        }
        match &mut self.offset {
            None => file.read(&mut to),
            Some(offset) => {
                let count = file.read_at(*offset, &mut to)?;
                *offset += count as u64;
                Ok(count)
            }
        }
    }

    /// Writes bytes for which there is room.
    fn put(&mut self, bytes: &[u8]) -> Answer {
        match &mut self.offset {
            None => self.file.write(&mut &*bytes),
            Some(offset) => {
                let count = self.file.write_at(*offset, &mut &*bytes)?;
                *offset += count as u64;
                Ok(count)
            }
        }
    }
}

fn reading(waits: &bool) -> Reading<'_> {
    match waits {
        true => Reading {
            waits: &|| !is_disturbed(),
            fills: false,
            peeks: false,
        },
        false => Reading {
            waits: &|| false,
            fills: false,
            peeks: false,
        },
    }
}

/// The bytes for which a pipe has room; waits for some if it is to.
fn room(pipe: &Pipe<Metal>, waits: bool) -> Answer {
    loop {
        let seen = pipe.changes(End::Writing);
        match pipe.room(End::Writing) {
            (0, false) => {}
            // Writing tells the error.
            (_, true) => return Ok(usize::MAX),
            (room, _) => return Ok(room),
        }
        if !waits || is_disturbed() {
            return Err(unready(waits));
        }
        let end = [(pipe, End::Writing, seen)];
        poll_changes(&system().kernel, end.into_iter(), || !is_disturbed());
    }
}

/// The pipe whose room limits what can be written to a file.
fn into(file: &OpenFile) -> Option<Arc<Pipe<Metal>>> {
    match file.pipe() {
        Some((pipe, _)) => Some(pipe.clone()),
        None => file.socket().map(|socket| socket.pipes()[1].clone()),
    }
}

pub fn splice(thread: &mut Thread, [from, from_at, to, to_at, bytes, flags]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let mut from = Place::read(thread, from, from_at)?;
    let mut to = Place::read(thread, to, to_at)?;
    refuse(&from.file, &to.file)?;
    let waits = flags & SPLICE_F_NONBLOCK == 0;
    let moved = copy(&mut from, &mut to, bytes, waits);
    let moved = signal_if_broken(thread, moved)?;
    from.finish(thread)?;
    to.finish(thread)?;
    Ok(moved)
}

/// Fails unless bytes can be moved between the two: one must be a pipe.
fn refuse(from: &OpenFile, to: &OpenFile) -> Result<(), Errno> {
    if !from.reads() || !to.writes() {
        return Err(Errno::BADF);
    }
    let is_known = |file: &OpenFile| {
        file.pipe().is_some()
            || matches!(
                file.inode().kind,
                Kind::File(_) | Kind::Socket(_) | Kind::Device(_) | Kind::Report(_)
            )
    };
    let is_one = Arc::ptr_eq(from.inode(), to.inode());
    if from.pipe().is_none() && to.pipe().is_none()
        || from.pipe().is_some() && is_one
        || !is_known(from)
        || !is_known(to)
        || to.flags.load(Ordering::Relaxed) & O_APPEND != 0
    {
        return Err(Errno::INVAL);
    }
    Ok(())
}

/// Moves bytes until there are none or there is no room; an error counts only if none is moved.
fn copy(from: &mut Place, to: &mut Place, bytes: usize, waits: bool) -> Answer {
    let mut buffer = heap::buffer(bytes.min(CHUNK))?;
    let mut done = 0;
    while done < bytes && !(done > 0 && is_disturbed()) {
        let step = |from: &mut Place, to: &mut Place, part: &mut [u8]| {
            let may_wait = |file: &OpenFile| waits && done == 0 && file.is_blocking();
            let space = match into(&to.file) {
                Some(pipe) => room(&pipe, may_wait(&to.file))?,
                None => usize::MAX,
            };
            let most = part.len().min(space);
            let count = from.get(&mut part[..most], may_wait(&from.file))?;
            to.put(&part[..count])
        };
        let most = (bytes - done).min(CHUNK);
        match step(from, to, &mut buffer[..most]) {
            Err(_) if done > 0 => break,
            Ok(0) => break,
            moved => done += moved?,
        }
    }
    Ok(done)
}

/// Copies bytes from a pipe to another, and leaves them in the first.
pub fn tee(thread: &mut Thread, [from, to, bytes, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let [from, to] = [thread.file(from)?, thread.file(to)?];
    if !from.reads() || !to.writes() {
        return Err(Errno::BADF);
    }
    let (Some((source, _)), Some((target, _))) = (from.pipe(), to.pipe()) else {
        return Err(Errno::INVAL);
    };
    if Arc::ptr_eq(source, target) {
        return Err(Errno::INVAL);
    }
    let waits = flags & SPLICE_F_NONBLOCK == 0;
    let most = bytes.min(room(target, waits && to.is_blocking())?);
    let mut buffer = heap::buffer(most.min(source.capacity()))?;
    let waits = waits && from.is_blocking();
    let how = Reading {
        peeks: true,
        ..reading(&waits)
    };
    let read = receive_from(source, &mut &mut *buffer, &how, |_| usize::MAX, |_| false)?;
    let count = read.ok_or_else(|| unready(waits))?;
    let copied = to.write(&mut &buffer[..count]);
    signal_if_broken(thread, copied)
}

/// Writes the thread's memory to a pipe, or reads from one to it.
pub fn vmsplice(thread: &mut Thread, [fd, at, count, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    if flags & !FLAGS != 0 {
        return Err(Errno::INVAL);
    }
    let file = thread.file(fd)?;
    let (pipe, end) = file.pipe().ok_or(Errno::BADF)?;
    let parts = vector(thread, at, count)?;
    let mut memory = Parts::new(thread, &parts)?;
    let waits = flags & SPLICE_F_NONBLOCK == 0 && file.is_blocking();
    match end {
        End::Reading => {
            let read = receive_from(
                pipe,
                &mut memory,
                &reading(&waits),
                |_| usize::MAX,
                |_| false,
            );
            read?.ok_or_else(|| unready(waits))
        }
        End::Writing => {
            let sent = send_to(pipe, &mut memory, || waits && !is_disturbed(), |_, _| ());
            let sent = sent.map_err(|error| match error {
                Errno::AGAIN => unready(waits),
                error => error,
            });
            signal_if_broken(thread, sent)
        }
    }
}

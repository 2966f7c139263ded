//! Open files, to which descriptors lead.

use super::fifo::Ends;
use super::{Device, Event, Inode, Kind, Listed, Owner};
use crate::abi::Errno;
use crate::process::is_disturbed;
use crate::process::limits;
use crate::system::{Lock, system};
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ipc::pipe::ATOMIC;
use ipc::{End, Pipe};
use linux_raw_sys::general::*;
use metal::Metal;

/// An open file: its object, and where the next byte is.
pub struct OpenFile {
    /// The object.
    pub what: Open,
    /// Where the next byte is; held while one is read or written.
    pub offset: Lock<u64>,
    /// The entries of a directory listed so far; locked under the offset.
    pub listed: Lock<Listed>,
    /// `O_…`, as far as they may be asked for or changed later.
    pub flags: AtomicU32,
    /// Whether it has had a lock of the inode's.
    pub has_flock: AtomicBool,
}

/// The kinds of open objects.
pub enum Open {
    /// A file, directory or device.
    Inode(Arc<Inode>),
    /// An end of a pipe.
    Pipe(PipeEnd),
    /// A counter.
    Event(Event),
}

/// An end of a pipe, which it closes when it is dropped.
pub struct PipeEnd {
    pipe: Arc<Pipe<Metal>>,
    /// The end; the reading one if it has both.
    end: End,
    /// The FIFO that it is of, and its ends; nothing for a pipe without a name.
    fifo: Option<(Arc<Inode>, Ends)>,
}

impl PipeEnd {
    /// Ends of a FIFO, which have just been opened.
    pub(super) fn of_fifo(pipe: Arc<Pipe<Metal>>, end: End, inode: Arc<Inode>, ends: Ends) -> Self {
        let fifo = Some((inode, ends));
        PipeEnd { pipe, end, fifo }
    }

    /// The FIFO that it is of.
    pub fn inode(&self) -> Option<&Arc<Inode>> {
        self.fifo.as_ref().map(|(inode, _)| inode)
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        match &self.fifo {
            None => self.pipe.close(&system().kernel, self.end),
            Some((inode, ends)) => {
                if let Kind::Fifo(fifo) = &inode.kind {
                    fifo.close(*ends);
                }
            }
        }
    }
}

/// The ends of a new pipe: the reading one, and the writing one.
pub fn pipe() -> Result<[Arc<OpenFile>; 2], Errno> {
    let pipe = Pipe::try_new().map_err(|_| Errno::NFILE)?;
    let pipe = Arc::new(pipe);
    Ok(
        [(End::Reading, O_RDONLY), (End::Writing, O_WRONLY)].map(|(end, flags)| {
            let pipe = pipe.clone();
            let fifo = None;
            OpenFile::new(Open::Pipe(PipeEnd { pipe, end, fifo }), flags)
        }),
    )
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Open::Inode(inode) = &self.what
            && self.has_flock.load(Ordering::Relaxed)
        {
            inode.flock.give_back(self);
            inode
                .records
                .forget(Owner::File(ptr::from_ref(self).addr()));
        }
    }
}

impl OpenFile {
    /// Opens something.
    pub fn new(what: Open, flags: u32) -> Arc<Self> {
        Arc::new(OpenFile {
            what,
            offset: Lock::new(0),
            listed: Lock::new(Listed::default()),
            flags: AtomicU32::new(flags),
            has_flock: AtomicBool::new(false),
        })
    }

    /// A process closes a descriptor of the file: its locks on parts go, whatever others it has.
    pub fn closed_by(&self, pid: u32) {
        if let Open::Inode(inode) = &self.what
            && let Kind::File(_) = &inode.kind
        {
            inode.records.forget(Owner::Process(pid));
        }
    }

    fn mode(&self) -> u32 {
        self.flags.load(Ordering::Relaxed) & O_ACCMODE
    }

    fn is_blocking(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & O_NONBLOCK == 0
    }

    /// Whether the calling thread waits here, if it has to.
    fn waits(&self) -> bool {
        self.is_blocking() && !is_disturbed()
    }

    /// Why it does not.
    fn no_wait(&self) -> Errno {
        match self.is_blocking() {
            true => Errno::INTR,
            false => Errno::AGAIN,
        }
    }

    /// Whether it may be read.
    pub fn reads(&self) -> bool {
        matches!(self.mode(), O_RDONLY | O_RDWR)
    }

    /// Whether it may be written.
    pub fn writes(&self) -> bool {
        matches!(self.mode(), O_WRONLY | O_RDWR)
    }

    /// The inode, if it has one.
    pub fn inode(&self) -> Result<&Arc<Inode>, Errno> {
        match &self.what {
            Open::Inode(inode) => Ok(inode),
            Open::Pipe(_) | Open::Event(_) => Err(Errno::SPIPE),
        }
    }

    /// The inode by which it may be opened again: also that of a FIFO.
    pub fn named(&self) -> Option<&Arc<Inode>> {
        match &self.what {
            Open::Inode(inode) => Some(inode),
            Open::Pipe(end) => end.inode(),
            Open::Event(_) => None,
        }
    }

    /// The pipe, and which end, if it is one.
    pub fn pipe(&self) -> Option<(&Pipe<Metal>, End)> {
        match &self.what {
            Open::Pipe(it) => Some((&it.pipe, it.end)),
            Open::Inode(_) | Open::Event(_) => None,
        }
    }

    /// Whether it is the terminal.
    pub fn is_terminal(&self) -> bool {
        let Open::Inode(inode) = &self.what else {
            return false;
        };
        matches!(inode.kind, Kind::Device(Device::Console | Device::Terminal))
    }

    /// The ends of pipes whose state tells when one of the `wanted` events comes; none if they never change.
    pub fn pollable(&self, wanted: u32) -> impl Iterator<Item = (&Pipe<Metal>, End)> {
        let end = match &self.what {
            Open::Event(event) => Some(event.pollable()),
            _ if self.is_terminal() => Some(system().terminal.input_pipe()),
            _ => self.pipe(),
        };
        // With both ends open neither the end of the bytes nor an error comes, and the writing end is mostly ready.
        let has_both = self.pipe().is_some() && self.reads() && self.writes();
        let is_awaited = move |end: &(_, End)| match end.1 {
            _ if !has_both => true,
            End::Reading => wanted & POLLIN != 0,
            End::Writing => wanted & POLLOUT != 0,
        };
        let other = end.filter(|_| has_both);
        let other = other.map(|(pipe, _)| (pipe, End::Writing));
        end.into_iter().chain(other).filter(is_awaited)
    }

    /// The events that `poll` reports: `POLL…`. Files never wait.
    pub fn events(&self) -> u32 {
        if let Open::Event(event) = &self.what {
            let told = event.is_ready().into_iter().zip([POLLIN, POLLOUT]);
            return told.map(|(is, event)| if is { event } else { 0 }).sum();
        }
        match self.pipe() {
            None if !self.is_terminal() || system().terminal.has_input() => POLLIN | POLLOUT,
            None => POLLOUT,
            Some((pipe, End::Reading)) => {
                let (bytes, is_alone) = pipe.room(End::Reading);
                let alone = if is_alone { POLLHUP } else { 0 };
                let room = pipe.room(End::Writing).0 >= ATOMIC;
                let writes = if self.writes() && room { POLLOUT } else { 0 };
                alone | writes | if bytes > 0 { POLLIN } else { 0 }
            }
            Some((pipe, End::Writing)) => {
                let (bytes, is_alone) = pipe.room(End::Writing);
                let alone = if is_alone { POLLERR } else { 0 };
                alone | if bytes >= ATOMIC { POLLOUT } else { 0 }
            }
        }
    }

    /// How many bytes may be read without waiting, if that is counted.
    pub fn available(&self) -> Option<usize> {
        match (self.pipe(), self.is_terminal()) {
            (Some((pipe, End::Reading)), _) => Some(pipe.room(End::Reading).0),
            (None, true) => Some(system().terminal.count()),
            _ => None,
        }
    }

    /// Reads; returns how many bytes, 0 at the end.
    pub fn read(&self, to: &mut [u8]) -> Result<usize, Errno> {
        if !self.reads() {
            return Err(Errno::BADF);
        }
        match &self.what {
            Open::Pipe(it) => {
                let read = it.pipe.read_while(&system().kernel, to, || self.waits());
                read.ok_or_else(|| self.no_wait())
            }
            Open::Event(event) => event
                .read(to, || self.waits())?
                .ok_or_else(|| self.no_wait()),
            Open::Inode(inode) => match &inode.kind {
                Kind::Device(device) => device.read(to, self.is_blocking()),
                _ => {
                    let mut offset = self.offset.lock();
                    let count = self.read_at(*offset, to)?;
                    *offset += count as u64;
                    Ok(count)
                }
            },
        }
    }

    /// Reads from `offset` on, and leaves the file's own.
    pub fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        match &self.inode()?.kind {
            _ if !self.reads() => Err(Errno::BADF),
            Kind::File(object) => Ok(object.read(offset, to)?),
            Kind::Device(device) => device.read(to, self.is_blocking()),
            Kind::Report(report) => report.read_at(offset, to),
            Kind::Directory(_) => Err(Errno::ISDIR),
            Kind::Fifo(_) => Err(Errno::SPIPE),
            Kind::Link(_) | Kind::Opened(_) | Kind::Made(_) => Err(Errno::INVAL),
        }
    }

    /// Writes; returns how many bytes.
    pub fn write(&self, from: &[u8]) -> Result<usize, Errno> {
        if !self.writes() {
            return Err(Errno::BADF);
        }
        match &self.what {
            Open::Pipe(it) => {
                let written = it.pipe.write_while(&system().kernel, from, || self.waits());
                match written.map_err(|_| Errno::PIPE)? {
                    0 if !from.is_empty() => Err(self.no_wait()),
                    count => Ok(count),
                }
            }
            Open::Event(event) => {
                let written = event.write(from, || self.waits())?;
                written.ok_or_else(|| self.no_wait())
            }
            Open::Inode(inode) => match &inode.kind {
                Kind::Device(device) => device.write(from),
                _ => {
                    let mut offset = self.offset.lock();
                    if self.flags.load(Ordering::Relaxed) & O_APPEND != 0 {
                        *offset = inode.object().map_or(0, |object| object.size());
                    }
                    let count = self.write_at(*offset, from)?;
                    *offset += count as u64;
                    Ok(count)
                }
            },
        }
    }

    /// Writes from `offset` on, and leaves the file's own.
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize, Errno> {
        match &self.inode()?.kind {
            _ if !self.writes() => Err(Errno::BADF),
            Kind::File(object) => {
                let count = object.write(offset, limits::within(offset, from)?)?;
                self.inode()?.attributes.modify();
                Ok(count)
            }
            Kind::Device(device) => device.write(from),
            _ => Err(Errno::INVAL),
        }
    }
}

//! Open files, to which descriptors lead.

use super::fifo::{Ends, Fifo};
use super::{Device, Epoll, Event, Inode, Kind, Listed, Owner, Socket, TTY, Ticker, Writer};
use crate::errno::Errno;
use crate::system::{Lock, is_disturbed};
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use ipc::pipe::ATOMIC;
use ipc::{End, Pipe};
use linux_raw_sys::general::*;
use metal::Metal;

/// An open file: its object, and its offset.
pub struct OpenFile {
    /// The object.
    pub what: Open,
    /// The offset of the next byte. Locked while bytes are read or written there.
    pub offset: Lock<u64>,
    /// The entries of a directory listed so far. Locked under the offset.
    pub listed: Lock<Listed>,
    /// The flags `O_…` that may be queried or changed later.
    pub flags: AtomicU32,
    /// True if it has held a lock on the inode.
    pub has_flock: AtomicBool,
    /// Who gets a signal when it is ready: a process, a group by a negative number, or 0 for none.
    pub owner: AtomicI32,
    /// Present if it may write the file's bytes, so that no program runs from the file.
    _writer: Option<Writer>,
}

/// The kinds of open objects.
pub enum Open {
    /// A file, directory, device, counter or socket.
    Inode(Arc<Inode>),
    /// An end of a pipe.
    Pipe(PipeEnd),
}

/// An end of a pipe, which it closes when it is dropped.
pub struct PipeEnd {
    pipe: Arc<Pipe<Metal>>,
    /// The end; the reading one if the file has both.
    end: End,
    /// The FIFO, and the ends of it that are open. A pipe is a FIFO without a name.
    fifo: Arc<Inode>,
    ends: Ends,
}

impl PipeEnd {
    /// The file for ends of a FIFO, which have just been opened.
    pub(super) fn of_fifo(pipe: Arc<Pipe<Metal>>, end: End, fifo: Arc<Inode>, ends: Ends) -> Self {
        PipeEnd {
            pipe,
            end,
            fifo,
            ends,
        }
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        if let Kind::Fifo(fifo) = &self.fifo.kind {
            fifo.close(self.ends);
        }
    }
}

/// The ends of a new pipe: the reading one, and the writing one.
pub fn pipe() -> Result<[Arc<OpenFile>; 2], Errno> {
    let inode = Inode::new(Kind::Fifo(Fifo::unnamed()), 0o600);
    let Kind::Fifo(fifo) = &inode.kind else {
        unreachable!("it has just been made");
    };
    let reader = fifo.open(&inode, [true, false], false)?;
    let writer = fifo.open(&inode, [false, true], false)?;
    Ok([
        OpenFile::new(Open::Pipe(reader), O_RDONLY),
        OpenFile::new(Open::Pipe(writer), O_WRONLY),
    ])
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if !self.is_place() {
            let what = if self.writes() {
                IN_CLOSE_WRITE
            } else {
                IN_CLOSE_NOWRITE
            };
            self.inode().happened(what);
        }
        if let Some(socket) = self.socket().filter(|_| !self.is_place()) {
            socket.close();
        }
        if self.has_flock.load(Ordering::Relaxed) {
            let inode = self.inode();
            inode.flock.give_back(self);
            inode
                .records
                .forget(Owner::File(ptr::from_ref(self).addr()));
        }
    }
}

impl OpenFile {
    /// An open file for an object.
    pub fn new(what: Open, flags: u32) -> Arc<Self> {
        Self::with_writer(what, flags, None)
    }

    /// Opens a file as a writer of it.
    pub fn with_writer(what: Open, flags: u32, writer: Option<Writer>) -> Arc<Self> {
        Arc::new(OpenFile {
            _writer: writer,
            what,
            offset: Lock::new(0),
            listed: Lock::new(Listed::default()),
            flags: AtomicU32::new(flags),
            has_flock: AtomicBool::new(false),
            owner: AtomicI32::new(0),
        })
    }

    /// Called when a process closes a descriptor of the file: drops the process's locks on parts,
    /// even if it has other descriptors.
    pub fn closed_by(&self, pid: u32) {
        self.inode().records.forget(Owner::Process(pid));
    }

    /// Returns true if the file is only a place in the file system (`O_PATH`).
    pub fn is_place(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & O_PATH != 0
    }

    /// The access mode; none for a place.
    fn mode(&self) -> u32 {
        if self.is_place() {
            O_ACCMODE
        } else {
            self.flags.load(Ordering::Relaxed) & O_ACCMODE
        }
    }

    /// Returns true if calls wait at this file.
    pub fn is_blocking(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & O_NONBLOCK == 0
    }

    /// Returns true if the calling thread is to wait at this file when it has to.
    pub fn waits(&self) -> bool {
        self.is_blocking() && !is_disturbed()
    }

    /// Returns true if the file may be read.
    pub fn reads(&self) -> bool {
        matches!(self.mode(), O_RDONLY | O_RDWR)
    }

    /// Returns true if the file may be written.
    pub fn writes(&self) -> bool {
        matches!(self.mode(), O_WRONLY | O_RDWR)
    }

    /// The inode.
    pub fn inode(&self) -> &Arc<Inode> {
        match &self.what {
            Open::Inode(inode) => inode,
            Open::Pipe(end) => &end.fifo,
        }
    }

    /// The inode, if it is seekable.
    pub fn seekable(&self) -> Result<&Arc<Inode>, Errno> {
        match &self.what {
            Open::Inode(inode) if !self.is_terminal() => match inode.kind {
                Kind::Event(_)
                | Kind::Ticker(_)
                | Kind::Special(_)
                | Kind::Epoll(_)
                | Kind::Socket(_) => Err(Errno::SPIPE),
                _ => Ok(inode),
            },
            _ => Err(Errno::SPIPE),
        }
    }

    /// The counter, if the file is one.
    pub fn event(&self) -> Option<&Event> {
        match &self.inode().kind {
            Kind::Event(event) => Some(event),
            _ => None,
        }
    }

    /// The timer, if the file is one.
    pub fn ticker(&self) -> Option<&Ticker> {
        match &self.inode().kind {
            Kind::Ticker(ticker) => Some(ticker),
            _ => None,
        }
    }

    /// The set of interests, if the file is one.
    pub fn epoll(&self) -> Option<&Epoll> {
        match &self.inode().kind {
            Kind::Epoll(epoll) => Some(epoll),
            _ => None,
        }
    }

    /// The socket, if the file is one.
    pub fn socket(&self) -> Option<&Arc<Socket>> {
        match &self.inode().kind {
            Kind::Socket(socket) => Some(socket),
            _ => None,
        }
    }

    /// The pipe from which it reads, and the one to which it writes, if it is a pipe or a socket.
    pub(super) fn ways(&self) -> Option<[Arc<Pipe<Metal>>; 2]> {
        match &self.what {
            Open::Pipe(it) => Some([it.pipe.clone(), it.pipe.clone()]),
            Open::Inode(_) => self.socket().map(|it| it.pipes()),
        }
    }

    /// The pipe and the end, if the file is one.
    pub fn pipe(&self) -> Option<(&Arc<Pipe<Metal>>, End)> {
        match &self.what {
            Open::Pipe(it) => Some((&it.pipe, it.end)),
            Open::Inode(_) => None,
        }
    }

    /// Returns true if the file is the terminal.
    pub fn is_terminal(&self) -> bool {
        let Open::Inode(inode) = &self.what else {
            return false;
        };
        matches!(inode.kind, Kind::Device(Device::Console | Device::Terminal))
    }

    /// The events that `poll` reports: `POLL…`. Files never wait.
    pub fn events(&self) -> u32 {
        if let Some(event) = self.event() {
            let told = event.is_ready().into_iter().zip([POLLIN, POLLOUT]);
            return told.map(|(is, event)| if is { event } else { 0 }).sum();
        }
        if let Some(ticker) = self.ticker() {
            return if ticker.is_ready() { POLLIN } else { 0 };
        }
        if let Kind::Special(special) = &self.inode().kind {
            return if special.is_ready() { POLLIN } else { 0 };
        }
        if let Some(epoll) = self.epoll() {
            return if epoll.is_ready() { POLLIN } else { 0 };
        }
        if let Some(socket) = self.socket() {
            return socket.events();
        }
        match self.pipe() {
            None if !self.is_terminal() || TTY.has_input() => POLLIN | POLLOUT,
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

    /// The number of bytes that may be read without waiting, if that is counted.
    pub fn available(&self) -> Option<u64> {
        match (&self.what, &self.inode().kind) {
            (Open::Pipe(end), _) => Some(end.pipe.room(End::Reading).0 as u64),
            (_, Kind::Socket(socket)) => socket.available().map(|bytes| bytes as u64),
            (_, Kind::Special(special)) => special.available(),
            (_, Kind::File(object)) => Some(object.size().saturating_sub(*self.offset.lock())),
            _ if self.is_terminal() => Some(TTY.count() as u64),
            _ => None,
        }
    }
}

//! Signals as a file (`signalfd`): a read takes signals that are pending for the reader.
//!
//! All such files share a pipe, so that whoever waits at one looks again when a signal has come for
//! any process. Files that stand for processes use it too, for the ends of processes.

use super::{Special, Target, unready};
use crate::errno::Errno;
use crate::single::Single;
use crate::system::system;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ipc::{End, Pipe, poll_changes};
use metal::Metal;

/// Bytes of a signal that is read.
pub const SIGNAL: usize = 128;

/// The signals that come, and the processes that end.
pub static ARRIVALS: Single<Arrivals> = Single::new();

/// The signals that come, and the processes that end.
pub struct Arrivals {
    /// It has a byte, so it is ready for those that know of fewer changes. Each signal is one, and
    /// each end of a process.
    pipe: Arc<Pipe<Metal>>,
    /// The number of files at which threads may wait. Changed before a thread looks for them,
    /// and read after one has come: sequentially consistent.
    files: AtomicU32,
}

impl Arrivals {
    /// None yet.
    pub fn new() -> Self {
        let pipe = Pipe::of_size(ipc::pipe::ATOMIC).expect("memory for a pipe");
        // There is room, and both ends are open.
        let _ = pipe.write(&system().kernel, &[0]);
        Arrivals {
            pipe: Arc::new(pipe),
            files: AtomicU32::new(0),
        }
    }

    /// Threads may wait, until the result is dropped.
    pub fn begin(&self) -> Waiting {
        self.files.fetch_add(1, Ordering::SeqCst);
        Waiting
    }

    /// The pipe at which to wait.
    pub fn pipe(&self) -> &Arc<Pipe<Metal>> {
        &self.pipe
    }

    /// Called when a signal is pending, or a process has ended.
    pub fn tell(&self) {
        if self.files.load(Ordering::SeqCst) > 0 {
            self.pipe.touch(&system().kernel, End::Writing);
        }
    }
}

/// A file from which signals are read.
pub struct Signals {
    /// The signals, as a set. Its changes guard no other memory: relaxed.
    wanted: AtomicU64,
    _waiting: Waiting,
}

/// A file at which threads may wait for signals, or for ends of processes.
pub struct Waiting;

impl Signals {
    /// A file with these signals.
    pub fn new(wanted: u64) -> Self {
        Signals {
            wanted: AtomicU64::new(wanted),
            _waiting: ARRIVALS.begin(),
        }
    }

    /// Changes which signals it has.
    pub fn set(&self, wanted: u64) {
        self.wanted.store(wanted, Ordering::Relaxed);
        ARRIVALS.tell();
    }

    fn changes(&self) -> u64 {
        ARRIVALS.pipe.changes(End::Reading)
    }
}

impl Special for Signals {
    fn name(&self) -> &'static [u8] {
        b"anon_inode:[signalfd]"
    }

    /// Reads as many as there is room for.
    fn read(
        &self,
        to: &mut dyn Target,
        blocks: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<usize, Errno> {
        let room = to.most() / SIGNAL;
        if room == 0 {
            return Err(Errno::INVAL);
        }
        let caller = system().kernel.caller;
        let mut done = 0;
        while done < room {
            let seen = self.changes();
            if let Some(bytes) = caller.take_signal(self.wanted.load(Ordering::Relaxed)) {
                if to.put(done * SIGNAL, &bytes) < SIGNAL {
                    return Err(Errno::FAULT);
                }
                done += 1;
                continue;
            }
            if done > 0 {
                break;
            }
            if !waits() {
                return Err(unready(blocks));
            }
            let end = [(&*ARRIVALS.pipe, End::Reading, seen)];
            poll_changes(&system().kernel, end.into_iter(), waits);
        }
        Ok(done * SIGNAL)
    }

    /// Returns true if the caller could read a signal.
    fn is_ready(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        system().kernel.caller.has_signal(wanted)
    }

    fn pipe(&self) -> &Arc<Pipe<Metal>> {
        &ARRIVALS.pipe
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        ARRIVALS.files.fetch_sub(1, Ordering::SeqCst);
    }
}

//! Signals as a file (`signalfd`): a read takes signals that are pending for the reader.
//!
//! All such files share a pipe, so that whoever waits at one looks again when a signal has come for
//! any process.

use super::{Target, unready};
use crate::errno::Errno;
use crate::single::Single;
use crate::system::system;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ipc::{End, Pipe, poll_changes};
use metal::Metal;

/// Bytes of a signal that is read.
pub const SIGNAL: usize = 128;

/// The signals that come.
pub static ARRIVALS: Single<Arrivals> = Single::new();

/// The signals that come.
pub struct Arrivals {
    /// It has a byte, so it is ready for those that know of fewer changes. Each signal is one.
    pipe: Arc<Pipe<Metal>>,
    /// The number of files at which threads may wait. Changed before a thread looks for signals,
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

    /// Called when a signal is pending.
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
}

impl Signals {
    /// A file with these signals.
    pub fn new(wanted: u64) -> Self {
        ARRIVALS.files.fetch_add(1, Ordering::SeqCst);
        Signals {
            wanted: AtomicU64::new(wanted),
        }
    }

    /// Changes which signals it has.
    pub fn set(&self, wanted: u64) {
        self.wanted.store(wanted, Ordering::Relaxed);
        ARRIVALS.tell();
    }

    /// Reads signals, as many as there is room for, and waits for one while `waits` returns true.
    pub fn read(
        &self,
        to: &mut dyn Target,
        blocks: bool,
        waits: impl Fn() -> bool,
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
            poll_changes(&system().kernel, end.into_iter(), &waits);
        }
        Ok(done * SIGNAL)
    }

    fn changes(&self) -> u64 {
        ARRIVALS.pipe.changes(End::Reading)
    }

    /// Returns true if the caller could read a signal.
    pub fn is_ready(&self) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        system().kernel.caller.has_signal(wanted)
    }

    /// The pipe at which to wait for signals.
    pub fn pipe(&self) -> &Arc<Pipe<Metal>> {
        &ARRIVALS.pipe
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        ARRIVALS.files.fetch_sub(1, Ordering::SeqCst);
    }
}

//! Signals that have been sent and not taken.

use super::{Info, Set, Signal};
use crate::abi::Errno;
use crate::heap;
use crate::system::Lock;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Signals that have been sent and not taken.
pub struct Pending {
    /// Which. Read where no lock may be taken; changed under the lock of `queue`, in one order with
    /// where threads sleep (`ThreadRef::wake`).
    set: AtomicU64,
    /// Why, in the order in which they came.
    queue: Lock<Vec<Info>>,
}

/// The most that wait for one process or thread.
const MOST: usize = 1024;

impl Pending {
    /// No signals.
    pub fn new() -> Self {
        Pending {
            set: AtomicU64::new(0),
            queue: Lock::new(Vec::new()),
        }
    }

    /// Which there are.
    pub fn set(&self) -> Set {
        Set(self.set.load(Ordering::SeqCst))
    }

    /// Adds a signal. Of those that are not queued one is kept, the first.
    pub fn add(&self, info: Info) -> Result<(), Errno> {
        let mut queue = self.queue.lock();
        let signal = info.signal;
        if self.set().has(signal) && !signal.is_queued() {
            return Ok(());
        }
        if signal.is_queued() && (queue.len() >= MOST || heap::is_short()) {
            return Err(Errno::AGAIN);
        }
        queue.push(info);
        self.set.fetch_or(signal.set().0, Ordering::SeqCst);
        Ok(())
    }

    /// The one to be taken first that `mask` does not hold back: those that faults cause, then the
    /// lowest.
    pub fn next(&self, mask: Set) -> Option<Signal> {
        let free = self.set().0 & !mask.0;
        let faults = free & FAULTS.0;
        let first = if faults != 0 { faults } else { free };
        (first != 0).then(|| Signal(first.trailing_zeros() + 1))
    }

    /// Takes a signal, if it is there.
    pub fn take(&self, signal: Signal) -> Option<Info> {
        let mut queue = self.queue.lock();
        let mut such = (0..queue.len()).filter(|&at| queue[at].signal == signal);
        let (at, more) = (such.next()?, such.next().is_some());
        if !more {
            self.set.fetch_and(!signal.set().0, Ordering::SeqCst);
        }
        Some(queue.remove(at))
    }

    /// Takes all signals of a set away.
    pub fn forget(&self, signals: Set) {
        let mut queue = self.queue.lock();
        queue.retain(|info| !signals.has(info.signal));
        self.set.fetch_and(!signals.0, Ordering::SeqCst);
    }
}

/// Signals that instructions cause: `ILL`, `TRAP`, `BUS`, `FPE`, `SEGV`, and `SYS`.
const FAULTS: Set = Set(1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 30);

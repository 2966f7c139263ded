//! Pending signals: sent, but not yet taken.

use super::{Info, Set, Signal};
use crate::errno::Errno;
use crate::fs::ARRIVALS;
use crate::heap;
use crate::system::Lock;
use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};

/// Pending signals: sent, but not yet taken.
pub struct Pending {
    /// The set of pending signals. Read where no lock may be taken; changed under the lock of
    /// `queue`, sequentially consistent with the keys at which threads sleep (`ThreadRef::wake`).
    set: AtomicU64,
    /// The causes of the pending signals.
    queue: Lock<Queue>,
}

#[derive(Default)]
struct Queue {
    /// The causes by signal, and for each signal in the order of arrival. The nodes are small
    /// allocations, so there is always memory for a signal that is not queued.
    infos: BTreeMap<(Signal, u64), Info>,
    /// The number of signals that have come.
    count: u64,
}

/// The most signals that are pending for one process or thread.
const MOST: usize = 1024;

impl Pending {
    /// An empty set.
    pub fn new() -> Self {
        Pending {
            set: AtomicU64::new(0),
            queue: Lock::new(Queue::default()),
        }
    }

    /// The set of pending signals.
    pub fn set(&self) -> Set {
        Set(self.set.load(Ordering::SeqCst))
    }

    /// Adds a signal. Of a signal that is not queued only the first one is kept.
    pub fn add(&self, info: Info) -> Result<(), Errno> {
        let mut queue = self.queue.lock();
        let signal = info.signal;
        if self.set().has(signal) && !signal.is_queued() {
            return Ok(());
        }
        if signal.is_queued() && (queue.infos.len() >= MOST || heap::is_short()) {
            return Err(Errno::AGAIN);
        }
        let place = (signal, queue.count);
        queue.infos.insert(place, info);
        queue.count += 1;
        self.set.fetch_or(signal.set().0, Ordering::SeqCst);
        drop(queue);
        ARRIVALS.tell();
        Ok(())
    }

    /// The signal to be taken next that `mask` does not block: those caused by faults first, then
    /// the lowest.
    pub fn next(&self, mask: Set) -> Option<Signal> {
        let free = self.set().0 & !mask.0;
        let faults = free & FAULTS.0;
        let first = if faults != 0 { faults } else { free };
        (first != 0).then(|| Signal(first.trailing_zeros() + 1))
    }

    /// Takes a signal, if it is pending.
    pub fn take(&self, signal: Signal) -> Option<Info> {
        let mut queue = self.queue.lock();
        let mut such = queue.infos.range((signal, 0)..=(signal, u64::MAX));
        let (&place, more) = (such.next()?.0, such.next().is_some());
        if !more {
            self.set.fetch_and(!signal.set().0, Ordering::SeqCst);
        }
        queue.infos.remove(&place)
    }

    /// Discards all pending signals of a set.
    pub fn forget(&self, signals: Set) {
        let mut queue = self.queue.lock();
        queue.infos.retain(|&(signal, _), _| !signals.has(signal));
        self.set.fetch_and(!signals.0, Ordering::SeqCst);
    }
}

/// Signals that instructions cause: `ILL`, `TRAP`, `BUS`, `FPE`, `SEGV`, and `SYS`.
const FAULTS: Set = Set(1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 30);

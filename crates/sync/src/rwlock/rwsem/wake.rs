//! The choice of the tasks that an [`Rwsem`] wakes.

use super::queue::{LockedQueue, Readers};
use super::{HANDOFF, READER, READERS, Rwsem, WAITERS, WRITER};
use machine::{Atomic, AtomicInt, Machine, Ordering};

/// Why tasks are woken, which decides what is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The lock was free: wake the first of the queue.
    Free,
    /// Other tasks read, or try to: wake the first, if it reads.
    OthersRead,
    /// The caller reads: wake the first, if it reads.
    Reading,
}

/// Tasks to wake when the queue is unlocked: a writer, or readers that have been granted the lock.
pub(super) struct Wakes<M: Machine> {
    writer: Option<M::Task>,
    readers: Readers<M>,
}

impl<M: Machine> Wakes<M> {
    const NONE: Self = Wakes {
        writer: None,
        readers: Readers::none(),
    };

    pub(super) fn are_some(&self) -> bool {
        self.writer.is_some() || self.readers.count != 0
    }

    /// Wakes these tasks. The queue is not locked.
    pub(super) fn wake(self) {
        self.writer
            .into_iter()
            .chain(self.readers)
            .for_each(M::unpark);
    }
}

impl<M: Machine, const SPIN: u64, const WAIT: u64> Rwsem<M, SPIN, WAIT> {
    #[cold]
    pub(super) fn wake(&self, reason: Reason) {
        let mut queue = self.lock_queue();
        let wakes = self.choose(reason, &mut queue);
        drop(queue);
        wakes.wake();
    }

    /// The tasks that can go on with `count`, which the caller has found or left behind.
    pub(super) fn next_to_wake(&self, count: usize, queue: &mut LockedQueue<'_, M>) -> Wakes<M> {
        if count & WRITER != 0 {
            return Wakes::NONE;
        }
        if count & READERS != 0 {
            return self.choose(Reason::OthersRead, queue);
        }
        self.allow_spinning();
        self.choose(Reason::Free, queue)
    }

    /// Grants the lock to readers, or chooses the writer that is to try again.
    fn choose(&self, reason: Reason, queue: &mut LockedQueue<'_, M>) -> Wakes<M> {
        let Some(first) = queue.first() else {
            return Wakes::NONE;
        };
        if first.writes {
            let writer = (reason == Reason::Free).then_some(first.task);
            return Wakes {
                writer,
                ..Wakes::NONE
            };
        }
        // A writer may steal the lock before it is granted to all readers, so it is granted to the
        // first one at once.
        let granted = match reason {
            Reason::Reading => 0,
            _ if self.grant_first(queue) => READER,
            _ => return Wakes::NONE,
        };
        let readers = queue.take_readers();
        let mut change = (readers.count * READER).wrapping_sub(granted);
        if queue.is_empty() {
            change = change.wrapping_sub(WAITERS);
        }
        // Only under the queue's lock is HANDOFF set or cleared.
        if self.count.load(Ordering::Relaxed) & HANDOFF != 0 {
            change = change.wrapping_sub(HANDOFF);
        }
        self.count.fetch_add(change, Ordering::Relaxed);
        Wakes {
            readers,
            ..Wakes::NONE
        }
    }

    /// Counts the first of the queue as a reader, unless a writer holds the lock; then sets
    /// `HANDOFF` if the reader is late. Returns true if the reader is counted.
    fn grant_first(&self, queue: &mut LockedQueue<'_, M>) -> bool {
        let Some(first) = queue.first() else {
            return false;
        };
        // Acquire: pairs with the release of the last writer, for all readers that are woken.
        let old = self.count.fetch_add(READER, Ordering::Acquire);
        if old & WRITER == 0 {
            self.own_as_reader(first.name);
            return true;
        }
        let mut change = 0usize.wrapping_sub(READER);
        if first.is_late() {
            if old & HANDOFF == 0 {
                change = change.wrapping_add(HANDOFF);
            }
            queue.hand_to_first();
        }
        self.count.fetch_add(change, Ordering::Relaxed);
        false
    }
}

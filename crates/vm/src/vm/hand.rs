//! The clock hand that goes round over pages and pmaps, and the state that reclaimers share.

use machine::{Atomic, AtomicInt, Ordering, Platform};

/// The number of times that a task checks if others have freed something before it lets other tasks
/// run.
const SPINS: u32 = 64;

/// The position of the next look, and the state that reclaimers share.
pub(crate) struct Hand<M: Platform> {
    at: M::AtomicUsize,
    /// Frames freed so far; wraps.
    freed: M::AtomicUsize,
    /// The number of tasks that reclaim now.
    busy: M::AtomicUsize,
    /// The pmap whose tables are next, by tag.
    tag: M::AtomicUsize,
}

impl<M: Platform> Hand<M> {
    pub(crate) fn new() -> Self {
        Hand {
            at: M::AtomicUsize::new(0),
            freed: M::AtomicUsize::new(0),
            busy: M::AtomicUsize::new(0),
            tag: M::AtomicUsize::new(0),
        }
    }

    /// The number of frames freed so far; wraps.
    #[inline]
    pub(crate) fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }

    /// The tag of the pmap that is the next to give up tables, or one before it.
    pub(crate) fn next_tag(&self) -> usize {
        // Relaxed, as below: a number.
        self.tag.load(Ordering::Relaxed)
    }

    pub(crate) fn set_next_tag(&self, tag: usize) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    /// Waits until a reclaimer has freed something, or none is left. Returns true if more than
    /// `before` frames have been freed. The caller holds no lock and is not pinned.
    pub(crate) fn wait(&self, before: usize) -> bool {
        let mut round = 0;
        // Acquire: pairs with the release of a reclaimer that has ended.
        while self.freed() == before && self.busy.load(Ordering::Acquire) > 0 {
            // A reclaimer may wait for a store, or for the CPU that this task has.
            if round < SPINS {
                M::relax(round)
            } else {
                M::yield_now()
            }
            round = round.saturating_add(1);
        }
        self.freed() != before
    }

    /// The number of the first of the `count` frames to look at next; wraps.
    pub(crate) fn advance(&self, count: usize) -> usize {
        // Relaxed: a number.
        self.at.fetch_add(count, Ordering::Relaxed)
    }

    /// Tells others that the caller is freeing frames, and counts and returns the number that
    /// `free` returns.
    pub(crate) fn reclaiming(&self, free: impl FnOnce() -> usize) -> usize {
        self.busy.fetch_add(1, Ordering::Relaxed);
        let freed = free();
        self.freed.fetch_add(freed, Ordering::Relaxed);
        // Release: a task that finds none busy finds the freed frames. Pairs with `wait`.
        let busy = self.busy.fetch_sub(1, Ordering::Release);
        debug_assert!(busy > 0, "a reclaimer ends twice");
        freed
    }
}

//! How forks take away the right to write.
//!
//! A fork makes entries read-only and flushes once, at its end; until then TLBs may know them as
//! writable.
//!
//! # Protocol
//! - A fork counts itself before it makes its first entry read-only, and until its flush is over.
//! - A fork that finds an entry read-only leaves it alone. Another fork may have made it so, and
//!   not flushed yet; then that fork is counted. So a fork that ends and finds none counted, and is
//!   not counted itself, has nothing to flush, and forks of a space that is not written write
//!   nothing of that space.
//! - Forks share flushes: one that needs a flush waits for the end of the next one that begins, and
//!   begins it itself if no other does. A flush that has begun already does not suffice, since it
//!   may precede a change of an entry by this fork.
//!
//! The flushes are numbered by one word, which is odd while one is under way.

#[cfg(test)]
mod model;

use machine::{Atomic, AtomicInt, Machine, Ordering, pte};

/// The forks of a space that take rights away, and their flushes.
pub(super) struct Revocations<M: Machine> {
    /// Forks that have made entries read-only and have not flushed.
    forks: M::AtomicUsize,
    /// Twice the number of completed flushes, plus 1 while one is under way.
    flushes: M::AtomicUsize,
}

/// A fork's part.
pub(super) struct Revoking<'a, M: Machine> {
    of: &'a Revocations<M>,
    is_counted: bool,
}

impl<M: Machine> Revocations<M> {
    pub(super) fn new() -> Self {
        Revocations {
            forks: M::AtomicUsize::new(0),
            flushes: M::AtomicUsize::new(0),
        }
    }

    /// Returns true if TLBs may know entries as writable that a fork has made read-only. Called
    /// when such entries have been seen, or under the locks of their slots.
    #[inline]
    pub(super) fn are_pending(&self) -> bool {
        // Acquire: pairs with the release of the fork that has flushed.
        self.forks.load(Ordering::Acquire) != 0
    }

    /// Begins a fork.
    pub(super) fn begin(&self) -> Revoking<'_, M> {
        Revoking {
            of: self,
            is_counted: false,
        }
    }

    /// Returns when a flush that began after this call is complete. Makes it by `flush`, which
    /// begins with a full fence, unless another fork does.
    fn flush_after(&self, flush: impl FnOnce()) {
        // Pairs with the fence of the flush: either that comes after the caller's entries, or the
        // caller finds it begun.
        M::fence(Ordering::SeqCst);
        // Relaxed: behind the fence.
        let begun = self.flushes.load(Ordering::Relaxed);
        let wanted = begun + 2 + begun % 2;
        let mut round = 0;
        loop {
            // Acquire: pairs with the release below.
            let now = self.flushes.load(Ordering::Acquire);
            if now >= wanted {
                return;
            }
            let is_free = now.is_multiple_of(2);
            if is_free && self.claim(now) {
                break;
            }
            M::relax(round);
            round += 1;
        }
        flush();
        // Release: a fork that finds the number finds the flush done.
        let begun = self.flushes.fetch_add(1, Ordering::Release);
        debug_assert!(begun % 2 == 1, "two forks flush at once");
    }

    /// Begins a flush if the number is still `now`, that of no flush under way. Returns false if
    /// another fork was faster.
    fn claim(&self, now: usize) -> bool {
        debug_assert!(now.is_multiple_of(2), "a flush is under way");
        // Relaxed: the flush fences.
        let claimed =
            self.flushes
                .compare_exchange(now, now + 1, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok()
    }
}

impl<M: Machine> Revoking<'_, M> {
    /// Makes `entry`, of a present page or of a table, read-only; returns it.
    pub(super) fn revoke(&mut self, entry: &M::AtomicU64) -> u64 {
        // Acquire: pairs with the release below, so that a fork that finds the entry read-only
        // finds the other counted.
        let bits = entry.load(Ordering::Acquire);
        if bits & pte::WRITABLE == 0 {
            return bits;
        }
        if !self.is_counted {
            self.is_counted = true;
            // Relaxed: the entry's release orders it.
            self.of.forks.fetch_add(1, Ordering::Relaxed);
        }
        // AcqRel: the walker may set accessed and dirty, as where entries are removed.
        entry.fetch_and(!pte::WRITABLE, Ordering::AcqRel) & !pte::WRITABLE
    }

    /// Ends the fork: no TLB knows an entry as writable any more that this fork has made, or found,
    /// read-only.
    pub(super) fn end(&mut self, flush: impl FnOnce()) {
        if self.of.are_pending() {
            self.of.flush_after(flush);
        }
        if self.is_counted {
            self.is_counted = false;
            // Release: an operation that finds no fork finds it flushed. Pairs with `are_pending`.
            let counted = self.of.forks.fetch_sub(1, Ordering::Release);
            debug_assert!(counted > 0, "a fork ends twice");
        }
    }
}

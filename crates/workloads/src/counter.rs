//! How many iterations a task has done, and whether it should go on.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counter of one task, on cache lines of its own (128 bytes, because x86 prefetches lines in
/// pairs).
///
/// Only the task writes the count, so counting is a plain load and store. The limit lies on the
/// same line, which the task owns anyway, so checking it costs no miss until another task says
/// stop. May lie in memory shared between processes.
///
/// Relaxed throughout: the numbers order nothing else.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Counter {
    count: AtomicU64,
    limit: AtomicU64,
}

const _: () = assert!(size_of::<Counter>() == 128);

impl Counter {
    /// A counter at 0 without a limit.
    pub const fn new() -> Self {
        Self::with_limit(u64::MAX)
    }

    /// A counter at 0 whose task stops once it has counted `limit`.
    pub const fn with_limit(limit: u64) -> Self {
        Counter {
            count: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
        }
    }

    /// Counts `n` more and says whether to go on. Only the counter's task may call it, or a child
    /// while the task waits for it.
    #[inline]
    #[must_use]
    pub fn add(&self, n: u64) -> bool {
        let count = self.count.load(Relaxed).wrapping_add(n);
        self.count.store(count, Relaxed);
        count < self.limit.load(Relaxed)
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// The count, for a task that is not Rust: it adds to the count instead of calling
    /// [`Counter::add`].
    pub fn as_ptr(&self) -> *mut u64 {
        self.count.as_ptr()
    }

    /// Asks the task to stop, which it does at its next [`Counter::add`].
    pub fn stop(&self) {
        self.limit.store(0, Relaxed);
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

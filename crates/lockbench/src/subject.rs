//! The measured lock, and the shared line that it protects.

use bench::Failure;
use machine::CpuRange;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync::Padded;

/// A lock (or an epoch domain, or a counter) and one operation on it.
pub trait Subject: Send + Sync + 'static {
    /// True if the operation runs its section alone, and each time.
    const EXCLUSIVE: bool;

    /// A thread's state from one operation to the next.
    type Own<'a>;

    /// A new subject, unlocked, for threads that are `cpus`.
    fn new(cpus: CpuRange) -> Self;

    /// The calling thread's state.
    fn own(&self) -> Self::Own<'_>;

    /// Performs the operation, which runs `section` inside.
    fn operate(&self, own: &mut Self::Own<'_>, section: impl FnOnce());

    /// Checks the subject after `operations` in all, when no thread is left.
    ///
    /// # Errors
    /// The error.
    fn verify(&self, operations: u64) -> Result<(), String>;
}

/// `Ok` if a lock is free, as it must be when all have left.
pub fn free(is_free: bool) -> Result<(), String> {
    if is_free {
        Ok(())
    } else {
        Err("still locked when all have left".into())
    }
}

/// A failed verification of the row `name`.
pub fn wrong(name: &'static str, threads: usize, why: String) -> Failure {
    Failure::Wrong { name, threads, why }
}

/// The writes of a critical section: two words of one line.
///
/// Atomics, so that a lock without exclusion gives wrong sums and not undefined behaviour; each
/// access is the plain instruction.
#[derive(Default)]
pub struct Line(Padded<[AtomicU64; 2]>);

impl Line {
    /// The critical section of an exclusive operation.
    #[inline(always)]
    pub fn write(&self) {
        for word in &self.0.0 {
            word.store(word.load(Relaxed) + 1, Relaxed);
        }
    }

    /// The section of an operation that others may run at the same time.
    #[inline(always)]
    pub fn read(&self) {
        black_box(self.0.0.each_ref().map(|word| word.load(Relaxed)));
    }

    /// Fails unless each of `operations` has written both words once.
    ///
    /// # Errors
    /// The counts found instead.
    pub fn verify(&self, operations: u64) -> Result<(), String> {
        let words = self.0.0.each_ref().map(|word| word.load(Relaxed));
        if words == [operations; 2] {
            return Ok(());
        }
        let [first, second] = words;
        Err(format!(
            "{operations} critical sections left {first} and {second} in their counters"
        ))
    }
}

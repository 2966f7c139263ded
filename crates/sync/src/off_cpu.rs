//! The lock of a whole kernel, which a task gives up while it is off its CPU.
//!
//! Other CPUs spin for such a lock and are not preempted, so a task that kept it while it slept
//! might never run again. A task that takes the lock notes that in its local words. A turnstile or
//! scheduler that takes the task off its CPU releases the lock, and acquires it again when the task
//! is back.

use crate::locals::KERNEL_LOCK;
use core::ptr;
use machine::Machine;

/// A lock that a task gives up while it is off its CPU.
#[derive(Debug)]
pub struct GivenUp {
    /// Releases the lock, if the calling task holds it. Returns how often the task had taken it.
    pub release: fn() -> u32,
    /// Acquires the lock this many times.
    pub acquire: fn(u32),
}

/// Notes that the calling task holds the lock.
#[inline]
pub fn hold<M: Machine>(lock: &'static GivenUp) {
    let word = ptr::from_ref(lock).expose_provenance();
    M::with_locals(|locals| locals.words[KERNEL_LOCK].set(word));
}

/// Notes that the calling task has released the lock.
#[inline]
pub fn release<M: Machine>() {
    M::with_locals(|locals| locals.words[KERNEL_LOCK].set(0));
}

/// Calls `work`, in which the calling task is off its CPU, without the lock that it has noted, if
/// any.
#[inline]
pub fn off_cpu<M: Machine, R>(work: impl FnOnce() -> R) -> R {
    let word = M::with_locals(|locals| locals.words[KERNEL_LOCK].get());
    if word == 0 {
        return work();
    }
    let lock = ptr::with_exposed_provenance::<GivenUp>(word);
    // SAFETY: only `hold` writes the word, and the structure is static.
    let lock = unsafe { &*lock };
    let times = (lock.release)();
    let result = work();
    (lock.acquire)(times);
    result
}

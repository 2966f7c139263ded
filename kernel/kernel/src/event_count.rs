//! Event counts: waiting for the next change of a state that a lock guards.
//!
//! A thread that changes the state counts the change under the lock, then wakes the waiters. A
//! thread that waits for a change reads the count under the lock, and sleeps only while it is the
//! same: either the sleeper finds another count, or the wake-up finds the sleeper.

use crate::system::system;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::Kernel;

/// The number of changes, wrapping. The lock of the sleepers orders it: relaxed.
#[derive(Default)]
pub struct EventCount(AtomicU32);

impl EventCount {
    /// The count. The caller holds the lock.
    pub fn read(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a change. The caller holds the lock, and calls [`EventCount::wake`] without it.
    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes the threads that wait.
    pub fn wake(&self) {
        system().kernel.wake(self.key(), usize::MAX);
    }

    /// Sleeps until the count differs from `seen`, or the thread is disturbed. The caller holds no
    /// lock.
    pub fn wait(&self, seen: u32) {
        system()
            .kernel
            .sleep(self.key(), || self.0.load(Ordering::Relaxed) == seen);
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

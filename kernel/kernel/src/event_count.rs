//! Event counts: waiting for the next change of something that a lock protects.
//!
//! Who changes it counts the change under the lock, then wakes the waiters. Who waits for a change
//! remembers the count under the lock, and sleeps only while it is the same: either the sleeper
//! finds another count, or the wake-up finds the sleeper.

use crate::system::system;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::Kernel;

/// How many changes there were, wrapping. The lock of the sleepers orders it: relaxed.
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

    /// Wakes those who wait.
    pub fn wake(&self) {
        system().kernel.wake(self.key(), usize::MAX);
    }

    /// Sleeps until the count is another than `seen`, or the thread is disturbed. The caller holds
    /// no lock.
    pub fn wait(&self, seen: u32) {
        system()
            .kernel
            .sleep(self.key(), || self.0.load(Ordering::Relaxed) == seen);
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

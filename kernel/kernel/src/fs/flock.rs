//! Locks on whole files (`flock`): an open file holds none, a shared one, or an exclusive one.

use super::OpenFile;
use crate::errno::Errno;
use crate::system::{Lock, is_disturbed, system};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::Kernel;

/// The locks of an inode.
pub struct Flock {
    holders: Lock<Vec<Holder>>,
    /// How often a lock was released, wrapping. Waiters sleep at its address.
    given_back: AtomicU32,
}

struct Holder {
    /// The address of the open file that holds the lock.
    file: usize,
    is_alone: bool,
}

impl Flock {
    /// No locks.
    pub fn new() -> Self {
        Flock {
            holders: Lock::new(Vec::new()),
            given_back: AtomicU32::new(0),
        }
    }

    /// Gives `file` a lock instead of its old one. With `waits`, waits until others allow it.
    pub fn take(&self, file: &OpenFile, is_alone: bool, waits: bool) -> Result<(), Errno> {
        loop {
            // Acquire: pairs with the release in `give_back`.
            let seen = self.given_back.load(Ordering::Acquire);
            if self.try_take(file, is_alone) {
                return Ok(());
            }
            if !waits {
                return Err(Errno::AGAIN);
            }
            // As on Linux, a file that waits for another lock loses its own.
            self.give_back(file);
            if is_disturbed() {
                return Err(Errno::INTR);
            }
            let unchanged = || self.given_back.load(Ordering::Acquire) == seen;
            system().kernel.sleep(self.key(), unchanged);
        }
    }

    fn try_take(&self, file: &OpenFile, is_alone: bool) -> bool {
        let file = ptr::from_ref(file).addr();
        let mut holders = self.holders.lock();
        let others = |holder: &Holder| holder.file != file && (is_alone || holder.is_alone);
        if holders.iter().any(others) {
            return false;
        }
        let was_alone = holders.iter().any(|holder| holder.is_alone);
        holders.retain(|holder| holder.file != file);
        holders.push(Holder { file, is_alone });
        drop(holders);
        if was_alone && !is_alone {
            self.tell();
        }
        true
    }

    /// Releases the lock of `file`.
    pub fn give_back(&self, file: &OpenFile) {
        let file = ptr::from_ref(file).addr();
        let mut holders = self.holders.lock();
        let before = holders.len();
        holders.retain(|holder| holder.file != file);
        let had = holders.len() < before;
        drop(holders);
        if had {
            self.tell();
        }
    }

    /// Wakes the waiters, which then look again.
    fn tell(&self) {
        // Release: pairs with the acquire in `take`.
        self.given_back.fetch_add(1, Ordering::Release);
        system().kernel.wake(self.key(), usize::MAX);
    }

    fn key(&self) -> *const () {
        ptr::from_ref(&self.given_back).cast()
    }
}

//! Robust locks: the locks that a thread holds when it ends, whose waiters are told.
//!
//! The C library keeps a list of them in the thread's memory (`set_robust_list`): a circular list
//! of links, the offset of a lock's word from its link, and the lock that the thread was about to
//! take.

use super::Thread;
use crate::errno::Errno;
use linux_raw_sys::general::{FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS};

/// The most locks: the list in a thread's memory may hold anything.
const MOST: usize = 2048;

impl Thread {
    /// Gives up all locks of the list.
    pub(super) fn leave_locks(&mut self) {
        let head = core::mem::take(&mut self.robust_list);
        if head != 0 {
            // As on Linux, the locks after an address that cannot be read are not found.
            let _ = self.leave_listed(head);
        }
    }

    fn leave_listed(&self, head: usize) -> Result<(), Errno> {
        // The lowest bit of a link is for locks of another kind.
        let mut link = self.read::<usize>(head)? & !1;
        let [offset, pending]: [usize; 2] = self.read(head.wrapping_add(8))?;
        let pending = pending & !1;
        for _ in 0..MOST {
            if link == head {
                break;
            }
            // Read before the lock is given up, because its next owner may take it off the list.
            let next = self.read::<usize>(link);
            if link != pending {
                self.leave_lock(link.wrapping_add(offset))?;
            }
            link = next? & !1;
        }
        match pending {
            0 => Ok(()),
            pending => self.leave_pending(pending.wrapping_add(offset)),
        }
    }

    /// Gives up the lock that the thread was about to take or to release. If no thread holds it, it
    /// was released, and its waiter not woken yet.
    fn leave_pending(&self, at: usize) -> Result<(), Errno> {
        if self.read::<u32>(at)? & FUTEX_TID_MASK == 0 {
            self.wake_at(at);
        }
        self.leave_lock(at)
    }

    /// Marks the lock whose word is at `at`, if the thread holds it, and wakes one waiter.
    fn leave_lock(&self, at: usize) -> Result<(), Errno> {
        if !at.is_multiple_of(4) {
            return Err(Errno::INVAL);
        }
        let is_mine = |word: u32| word & FUTEX_TID_MASK == self.shared.tid();
        // Atomic, so that a waiter that marks the word meanwhile is woken.
        let word = self.update(at, |word| {
            if is_mine(word) {
                word & FUTEX_WAITERS | FUTEX_OWNER_DIED
            } else {
                word
            }
        })?;
        if is_mine(word) && word & FUTEX_WAITERS != 0 {
            self.wake_at(at);
        }
        Ok(())
    }
}

//! Locks that a thread has when it ends: their waiters are told.
//!
//! The C library keeps a list of them in the thread's memory (`set_robust_list`): a circle of links,
//! the place of the lock's word beside its link, and the lock that the thread was about to take.

use super::Thread;
use crate::abi::{self, Errno};
use linux_raw_sys::general::{FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS};

/// The most locks: the list in a thread's memory may hold anything.
const MOST: usize = 2048;

impl Thread {
    /// Gives all locks of the list up. The thread does not run in user mode any more.
    pub(super) fn leave_locks(&mut self) {
        if core::mem::take(&mut self.robust_list) != 0 {
            // A list that cannot be read is none.
            let _ = self.leave_listed();
        }
    }

    fn leave_listed(&self) -> Result<(), Errno> {
        let head = self.robust_list;
        let mut link: usize = self.read(head)?;
        let [offset, pending]: [usize; 2] = self.read(head.wrapping_add(8))?;
        for _ in 0..MOST {
            if link == head {
                break;
            }
            // The lowest bit is for locks of another kind.
            let at = link & !1;
            if at != pending {
                self.leave_lock(at.wrapping_add(offset))?;
            }
            link = self.read(at)?;
        }
        match pending {
            0 => Ok(()),
            pending => self.leave_lock((pending & !1).wrapping_add(offset)),
        }
    }

    /// Marks the lock whose word is at `at`, if it is the thread's, and wakes one waiter.
    fn leave_lock(&self, at: usize) -> Result<(), Errno> {
        let word: u32 = self.read(at)?;
        if word & FUTEX_TID_MASK != self.shared.tid() || !at.is_multiple_of(4) {
            return Ok(());
        }
        // Waiters change nothing but the mark that they wait, and wake up by themselves then.
        self.write(at, word & FUTEX_WAITERS | FUTEX_OWNER_DIED)?;
        if word & FUTEX_WAITERS != 0 {
            abi::wake_futex(self, at, 1);
        }
        Ok(())
    }
}

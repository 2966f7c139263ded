//! The calling task as a thread, for the parts below processes.

use super::{ThreadRef, limits, wait_until, with_current};
use crate::caller::{Caller, Identity};
use crate::errno::Errno;
use core::ptr;
use core::sync::atomic::Ordering;

/// The calling task, which may be a thread.
pub struct CurrentTask;

impl Caller for CurrentTask {
    fn is_disturbed(&self) -> bool {
        with_current(|thread| thread.is_some_and(ThreadRef::is_disturbed))
    }

    fn asleep(&self, key: Option<*const ()>, sleep: &mut dyn FnMut()) {
        with_current(|thread| match (thread, key) {
            (None, _) => sleep(),
            (Some(thread), None) => thread.usage.asleep(sleep),
            (Some(thread), Some(key)) => {
                // Sequentially consistent with `ThreadRef::interrupt`: either that finds the key,
                // and its wake-up the sleeper, or the sleeper finds that it is disturbed.
                thread.sleeps_at.store(key.cast_mut(), Ordering::SeqCst);
                thread.usage.asleep(sleep);
                thread.sleeps_at.store(ptr::null_mut(), Ordering::SeqCst);
            }
        });
    }

    fn wait_until(&self, time: u64, wait: &mut dyn FnMut()) {
        wait_until(time, wait);
    }

    fn identity(&self) -> Identity {
        with_current(|thread| Identity {
            process: thread.map_or(0, |thread| thread.process.pid),
            user: 0,
            group: 0,
        })
    }

    fn room(&self, offset: u64, bytes: usize) -> Result<usize, Errno> {
        limits::room(offset, bytes)
    }
}

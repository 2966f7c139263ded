//! The calling task as a thread, for the parts below processes.

use super::{Set, ThreadRef, limits, wait_until, with_current};
use crate::caller::Caller;
use crate::errno::Errno;
use crate::users::Users;
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

    fn take_signal(&self, wanted: u64) -> Option<[u8; 128]> {
        with_current(|thread| Some(thread?.take_signal(Set(wanted))?.file_bytes()))
    }

    fn has_signal(&self, wanted: u64) -> bool {
        with_current(|thread| {
            let pending =
                |thread: &ThreadRef| thread.pending.set().0 | thread.process.pending.set().0;
            thread.map_or(0, pending) & wanted != 0
        })
    }

    fn process(&self) -> u32 {
        with_current(|thread| thread.map_or(0, |thread| thread.process.pid))
    }

    fn users(&self) -> Users {
        with_current(|thread| {
            thread.map_or_else(Users::default, |thread| thread.process.users.lock().clone())
        })
    }

    fn room(&self, offset: u64, bytes: usize) -> Result<usize, Errno> {
        limits::room(offset, bytes)
    }
}

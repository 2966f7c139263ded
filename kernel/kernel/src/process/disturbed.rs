//! Sleeps that a signal ends.

use super::thread::with_current;
use baselines::selected::AnyKernel;
use core::ptr;
use core::sync::atomic::Ordering;
use ipc::{Entry, Kernel};
use metal::Metal;

/// A kernel whose sleepers wake up when they are disturbed: when a signal comes, or their process
/// ends. They then check for themselves whether to sleep on.
pub struct Disturbed(pub AnyKernel<Metal>);

impl Kernel<Metal> for Disturbed {
    fn futex_buckets(&self, cpus: usize) -> usize {
        self.0.futex_buckets(cpus)
    }

    fn enter(&self, why: Entry) {
        self.0.enter(why);
    }

    fn leave(&self, why: Entry) {
        self.0.leave(why);
    }

    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        with_current(|thread| {
            let Some(thread) = thread else {
                return self.0.sleep(key, still);
            };
            // In one order with `ThreadRef::interrupt`: either it finds the key, and its
            // wake-up the sleeper, or the signal is found here, under the lock of the sleepers.
            thread.sleeps_at.store(key.cast_mut(), Ordering::SeqCst);
            let sleep = || self.0.sleep(key, || !thread.is_disturbed() && still());
            let slept = thread.usage.asleep(sleep);
            thread.sleeps_at.store(ptr::null_mut(), Ordering::SeqCst);
            slept
        })
    }

    fn wake(&self, key: *const (), count: usize) -> usize {
        self.0.wake(key, count)
    }

    fn select_wakeup(&self, tell: impl FnOnce()) {
        self.0.select_wakeup(tell);
    }

    fn sleep_until(&self, time: u64) {
        with_current(|thread| match thread {
            Some(thread) => thread.usage.asleep(|| self.0.sleep_until(time)),
            None => self.0.sleep_until(time),
        });
    }
}

//! Sleeps that a signal ends.

use crate::caller::Caller;
use baselines::selected::AnyKernel;
use ipc::{Entry, Kernel};
use metal::Metal;

/// A kernel whose sleepers wake up when they are *disturbed*: when a signal comes, or their process
/// ends. They then check for themselves if they are to sleep on.
pub struct Disturbed {
    /// The kernel.
    pub kernel: AnyKernel<Metal>,
    /// Tells if the calling task is disturbed.
    pub caller: &'static dyn Caller,
}

impl Kernel<Metal> for Disturbed {
    fn futex_buckets(&self, cpus: usize) -> usize {
        self.kernel.futex_buckets(cpus)
    }

    fn enter(&self, why: Entry) {
        self.kernel.enter(why);
    }

    fn leave(&self, why: Entry) {
        self.kernel.leave(why);
    }

    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        let (mut still, mut slept) = (Some(still), false);
        self.caller.asleep(Some(key), &mut || {
            // A signal that came before the key was known is found here, under the lock of the
            // sleepers.
            let still = || !self.caller.is_disturbed() && still.take().is_some_and(|still| still());
            slept = self.kernel.sleep(key, still);
        });
        slept
    }

    fn wake(&self, key: *const (), count: usize) -> usize {
        self.kernel.wake(key, count)
    }

    fn select_wakeup(&self, tell: impl FnOnce()) {
        self.kernel.select_wakeup(tell);
    }

    fn sleep_until(&self, time: u64) {
        self.caller
            .asleep(None, &mut || self.kernel.sleep_until(time));
    }
}

//! A kernel, chosen at run time.

use crate::openbsd::BigLock;
use ipc::{Entry, Kernel, Own};
use machine::Machine;

/// How the tasks of a system enter its kernel and sleep there, chosen when it is made.
pub enum AnyKernel<M: Machine> {
    /// No lock of the whole kernel, sleepers hashed.
    Own(Own<M>),
    /// OpenBSD's kernel, which takes `KERNEL_LOCK` for all that is not unlocked.
    BigLock(BigLock<M>),
}

macro_rules! dispatch {
    ($any:expr, $kernel:ident => $call:expr) => {
        match $any {
            AnyKernel::Own($kernel) => $call,
            AnyKernel::BigLock($kernel) => $call,
        }
    };
}

impl<M: Machine> Kernel<M> for AnyKernel<M> {
    fn futex_buckets(&self, cpus: usize) -> usize {
        dispatch!(self, kernel => kernel.futex_buckets(cpus))
    }

    #[inline]
    #[track_caller]
    fn enter(&self, why: Entry) {
        dispatch!(self, kernel => kernel.enter(why))
    }

    #[inline]
    #[track_caller]
    fn leave(&self, why: Entry) {
        dispatch!(self, kernel => kernel.leave(why))
    }

    #[track_caller]
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        dispatch!(self, kernel => kernel.sleep(key, still))
    }

    #[track_caller]
    fn wake(&self, key: *const (), count: usize) -> usize {
        dispatch!(self, kernel => kernel.wake(key, count))
    }

    #[track_caller]
    fn select_wakeup(&self, tell: impl FnOnce()) {
        dispatch!(self, kernel => kernel.select_wakeup(tell))
    }

    #[track_caller]
    fn sleep_until(&self, time: u64) {
        dispatch!(self, kernel => kernel.sleep_until(time))
    }
}

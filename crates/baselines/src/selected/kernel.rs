//! Any kernel.

use ipc::{Entry, Kernel, Own};
use machine::Machine;

/// How the tasks of a system enter its kernel and sleep there, chosen when it is made.
pub enum AnyKernel<M: Machine> {
    /// No lock of the whole kernel, sleepers hashed.
    Own(Own<M>),
}

impl<M: Machine> Kernel<M> for AnyKernel<M> {
    fn futex_buckets(&self, cpus: usize) -> usize {
        match self {
            AnyKernel::Own(kernel) => kernel.futex_buckets(cpus),
        }
    }

    #[inline]
    fn enter(&self, why: Entry) {
        match self {
            AnyKernel::Own(kernel) => kernel.enter(why),
        }
    }

    #[inline]
    fn leave(&self, why: Entry) {
        match self {
            AnyKernel::Own(kernel) => kernel.leave(why),
        }
    }

    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        match self {
            AnyKernel::Own(kernel) => kernel.sleep(key, still),
        }
    }

    fn wake(&self, key: *const (), count: usize) -> usize {
        match self {
            AnyKernel::Own(kernel) => kernel.wake(key, count),
        }
    }

    fn select_wakeup(&self, tell: impl FnOnce()) {
        match self {
            AnyKernel::Own(kernel) => kernel.select_wakeup(tell),
        }
    }

    fn sleep_until(&self, time: u64) {
        match self {
            AnyKernel::Own(kernel) => kernel.sleep_until(time),
        }
    }
}

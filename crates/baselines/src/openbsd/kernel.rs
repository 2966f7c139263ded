//! The calls that take `KERNEL_LOCK` on entry to the kernel (S12 and S15 in case study 003).
//!
//! In the autumn of 2021 every call that maps memory or makes processes takes it, and with
//! [`Faults::Locked`] every fault (OpenBSD 7.0, sys/arch/arm64/arm64/trap.c). Reading and writing a
//! pipe, futexes and naps do without; but a sleep that a signal may end (`PCATCH`) takes it to
//! check for signals, and a wake-up of pollers (`selwakeup`) for their list.

use super::Scheduler;
use core::marker::PhantomData;
use ipc::{Entry, Kernel};
use machine::Machine;

/// Whether faults take `KERNEL_LOCK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// Yes: before the unlocking.
    Locked,
    /// No: after it.
    Unlocked,
}

/// OpenBSD's entry to the kernel. All users of one machine share its locks.
pub struct BigLock<M: Machine> {
    faults: Faults,
    machine: PhantomData<fn() -> M>,
}

impl<M: Machine> BigLock<M> {
    /// A kernel with faults locked or not.
    pub fn new(faults: Faults) -> Self {
        BigLock {
            faults,
            machine: PhantomData,
        }
    }

    fn takes(&self, why: Entry) -> bool {
        match why {
            Entry::Fault => self.faults == Faults::Locked,
            Entry::Read | Entry::Write | Entry::Futex | Entry::Sleep => false,
            Entry::MapAnonymous
            | Entry::MapFile
            | Entry::Unmap
            | Entry::Protect
            | Entry::Memory
            | Entry::Break
            | Entry::Fork
            | Entry::Exec
            | Entry::Exit
            | Entry::Wait
            | Entry::Descriptor
            | Entry::File
            | Entry::Poll => true,
        }
    }
}

impl<M: Machine> Kernel<M> for BigLock<M> {
    /// One list of all waiters, under one lock (`ftlock`).
    fn futex_buckets(&self, _: usize) -> usize {
        1
    }

    #[track_caller]
    fn enter(&self, why: Entry) {
        if self.takes(why) {
            Scheduler::<M>::of_machine().kernel.lock();
        }
    }

    fn leave(&self, why: Entry) {
        if self.takes(why) {
            Scheduler::<M>::of_machine().kernel.unlock();
        }
    }

    #[track_caller]
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        let scheduler = Scheduler::<M>::of_machine();
        scheduler.kernel.lock();
        let slept = scheduler.sleep(key, still);
        scheduler.kernel.unlock();
        slept
    }

    #[track_caller]
    fn wake(&self, key: *const (), count: usize) -> usize {
        Scheduler::<M>::of_machine().wake(key, count)
    }

    #[track_caller]
    fn select_wakeup(&self, tell: impl FnOnce()) {
        let scheduler = Scheduler::<M>::of_machine();
        scheduler.kernel.lock();
        tell();
        scheduler.kernel.unlock();
    }

    #[track_caller]
    fn sleep_until(&self, time: u64) {
        let scheduler = Scheduler::<M>::of_machine();
        scheduler.kernel.lock();
        scheduler.sleep_until(time);
        scheduler.kernel.unlock();
    }
}

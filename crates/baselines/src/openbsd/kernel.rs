//! The calls that take `KERNEL_LOCK` on entry to the kernel (S12 and S15 in case study 003).
//!
//! | takes it | [`Unlocked::Nothing`] | [`Unlocked::Faults`] | [`Unlocked::Mappings`] |
//! |---|---|---|---|
//! | a fault | yes | no | no |
//! | `mmap` of anonymous memory, `munmap`, `mprotect` | yes | yes | no |
//! | `mmap` of a file, `break`, `madvise`, `mlock` | yes | yes | yes |
//! | `fork`, `execve`, `exit`, `wait4` | yes | yes | yes |
//! | opening, reading and writing files | yes | yes | yes: at the vnode, below the call |
//! | reading and writing a pipe, futexes, naps | no | no | no |
//! | `poll` | yes | yes | no |
//! | a sleep that a signal may end (`PCATCH`), to check for signals | yes | yes | no |
//! | a wake-up of pollers (`selwakeup`) | yes | yes | no |
//!
//! The first column is OpenBSD 7.0 (sys/arch/arm64/arm64/trap.c), the second that of autumn 2021,
//! the third 7.6: `NOLOCK` in sys/kern/syscalls.master, `sleep_signal_check` of kern_synch.c.
//! Mappings are unlocked since 7.3 (2023). `sys_mmap` takes the lock itself for a file.
//!
//! The differences: the end of a process keeps the lock while its memory is freed, which OpenBSD
//! leaves to a thread without the lock, the reaper; creating a pipe takes it in all three.

use super::Scheduler;
use core::marker::PhantomData;
use ipc::{Entry, Kernel};
use machine::Machine;

/// What runs without `KERNEL_LOCK`. Each variant includes the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unlocked {
    /// Nothing: faults and calls on mappings take the lock.
    Nothing,
    /// Faults run without the lock.
    Faults,
    /// Calls on mappings of anonymous memory, and sleeping, also run without the lock.
    Mappings,
}

/// OpenBSD's entry to the kernel. All users of one machine share its locks.
pub struct BigLock<M: Machine> {
    unlocked: Unlocked,
    machine: PhantomData<fn() -> M>,
}

impl<M: Machine> BigLock<M> {
    /// A kernel with these parts unlocked.
    pub fn new(unlocked: Unlocked) -> Self {
        BigLock {
            unlocked,
            machine: PhantomData,
        }
    }

    fn takes(&self, why: Entry) -> bool {
        match why {
            Entry::Fault => self.unlocked < Unlocked::Faults,
            Entry::Read | Entry::Write | Entry::Futex | Entry::Sleep => false,
            Entry::MapAnonymous | Entry::Unmap | Entry::Protect | Entry::Poll => {
                !self.sleeps_free()
            }
            Entry::MapFile
            | Entry::Memory
            | Entry::Break
            | Entry::Fork
            | Entry::Exec
            | Entry::Exit
            | Entry::Wait
            | Entry::Descriptor
            | Entry::File => true,
        }
    }

    /// Returns true if a task sleeps, and wakes pollers, without the lock.
    fn sleeps_free(&self) -> bool {
        self.unlocked >= Unlocked::Mappings
    }

    /// Does `work` with the lock, if sleeping takes it.
    #[track_caller]
    fn to_sleep<R>(&self, work: impl FnOnce(&Scheduler<M>) -> R) -> R {
        let scheduler = Scheduler::<M>::of_machine();
        if self.sleeps_free() {
            return work(scheduler);
        }
        scheduler.kernel.lock();
        let result = work(scheduler);
        scheduler.kernel.unlock();
        result
    }
}

impl<M: Machine> Kernel<M> for BigLock<M> {
    /// One bucket: OpenBSD has one list of all waiters, under one lock (`ftlock`).
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
        self.to_sleep(|scheduler| scheduler.sleep(key, still))
    }

    #[track_caller]
    fn wake(&self, key: *const (), count: usize) -> usize {
        Scheduler::<M>::of_machine().wake(key, count)
    }

    #[track_caller]
    fn select_wakeup(&self, tell: impl FnOnce()) {
        self.to_sleep(|_| tell());
    }

    #[track_caller]
    fn sleep_until(&self, time: u64) {
        self.to_sleep(|scheduler| scheduler.sleep_until(time));
    }
}

//! Sleeping and waking in OpenBSD before the scheduler lock was split: one lock for all of it (S14
//! in case study 003).
//!
//! `slpque` has 128 queues by the address slept on, and all are under `SCHED_LOCK`, under which
//! CPUs also choose what to run (OpenBSD 7.0, sys/kern/kern_synch.c and sched_bsd.c). One sleep
//! takes it three times, and one wake-up once:
//!
//! ```text
//! sleep:   SCHED_LOCK; enqueue; look again; release KERNEL_LOCK; switch to the idle thread,
//!          which releases SCHED_LOCK
//! wakeup:  SCHED_LOCK; walk the queue; make each sleeper runnable; release it
//! resume:  the idle thread: SCHED_LOCK, switch to the sleeper, which releases it;
//!          KERNEL_LOCK as often as before; SCHED_LOCK, note that it runs, release it
//! ```
//! The differences: an idle CPU looks at its run queue when it is told to, without taking the lock
//! to find nothing; and there is one task per CPU, so no other task runs meanwhile.

use super::MpLock;
use machine::Machine;
use sync::lock_class;
use sync::sleepq::asleep;
use sync::turnstile::Turnstiles;
use sync::watch::note_sleep;

lock_class!(
    /// The lock of the whole kernel.
    pub KernelLock = "KERNEL_LOCK", rank 1
);
lock_class!(
    /// The lock of the scheduler and of the sleep queues. A leaf.
    pub SchedLock = "SCHED_LOCK", rank 90
);

/// Queues of `slpque` (`TABLESIZE`).
const QUEUES: usize = 128;

/// The scheduler of a machine that runs OpenBSD.
pub struct Scheduler<M: Machine> {
    /// `kernel_lock`.
    pub kernel: MpLock<M, KernelLock>,
    /// `sched_lock`.
    sched: MpLock<M, SchedLock>,
    /// `slpque`, under `sched`. Its own locks are contended only while a sleeper enqueues.
    queues: Turnstiles<M>,
}

impl<M: Machine> Scheduler<M> {
    /// The machine's scheduler.
    pub fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| {
            let scheduler = Scheduler {
                kernel: MpLock::new(),
                sched: MpLock::new(),
                queues: Turnstiles::new(QUEUES),
            };
            scheduler
                .kernel
                .label("KERNEL_LOCK", "KERNEL_LOCK's depths");
            scheduler.sched.label("SCHED_LOCK", "SCHED_LOCK's depths");
            scheduler
        })
    }

    /// Sleeps on `key` until woken, if `still` holds under `SCHED_LOCK`; returns whether it slept.
    /// Releases `KERNEL_LOCK` meanwhile.
    #[track_caller]
    pub fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        self.sched.lock();
        let queue = self.queues.lock(key);
        if !still() {
            drop(queue);
            self.sched.unlock();
            return false;
        }
        // The queue is locked until the task stands in it: its waker waits for that.
        self.switch(|| queue.wait());
        true
    }

    /// Sleeps until the machine's clock reads `time` nanoseconds. Releases `KERNEL_LOCK` meanwhile.
    /// The clock's interrupt makes the task runnable, under `SCHED_LOCK`.
    #[track_caller]
    pub fn sleep_until(&self, time: u64) {
        self.sched.lock();
        self.switch(|| M::sleep_until(time));
    }

    /// Releases all locks and blocks, then reacquires them (`mi_switch`). Called under
    /// `SCHED_LOCK`, which it releases.
    #[track_caller]
    fn switch(&self, block: impl FnOnce()) {
        let depth = self.kernel.release_all();
        self.sched.unlock();
        asleep::<M>(block);
        note_sleep::<M>();
        // The idle thread finds the task in its CPU's run queue, and switches to it.
        self.sched.lock();
        self.sched.unlock();
        self.kernel.lock_again(depth);
        self.sched.lock();
        self.sched.unlock();
    }

    /// Wakes the `count` tasks that have slept longest on `key`; returns how many there were.
    #[track_caller]
    pub fn wake(&self, key: *const (), count: usize) -> usize {
        self.sched.lock();
        let mut queue = self.queues.lock(key);
        let woken = (0..count).take_while(|_| queue.signal()).count();
        // They are made runnable, and their CPUs told, under the lock.
        drop(queue);
        self.sched.unlock();
        woken
    }
}

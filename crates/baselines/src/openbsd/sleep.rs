//! Sleeping and waking in OpenBSD before the scheduler lock was split: one lock for all of it (S14
//! in case study 003).
//!
//! `slpque` has 128 queues by the address slept on, and all are under `SCHED_LOCK`, under which
//! CPUs also choose what to run (OpenBSD 7.0, sys/kern/kern_synch.c and sched_bsd.c). Where
//! [`sched::openbsd::OpenBsd`] schedules the machine's tasks, that is one lock, and a sleeper keeps
//! it through the switch:
//!
//! ```text
//! sleep:   SCHED_LOCK; enqueue; look again; release KERNEL_LOCK; switch to another task or the
//!          idle thread, which releases SCHED_LOCK
//! wakeup:  SCHED_LOCK; walk the queue; make each sleeper runnable; release it
//! resume:  some CPU's switch to the sleeper; KERNEL_LOCK as often as before
//! ```
//! On other machines a task has a CPU of its own, and this module takes the lock where OpenBSD's
//! scheduler would: one sleep takes `SCHED_LOCK` three times.
//!
//! ```text
//! sleep:   as above; the idle thread releases SCHED_LOCK
//! resume:  the idle thread: SCHED_LOCK, switch to the sleeper, which releases it;
//!          KERNEL_LOCK as often as before; SCHED_LOCK, note that it runs, release it
//! ```
//! The differences: an idle CPU looks at its run queue only when told to, so it never takes the
//! lock to find the queue empty; and, without a scheduler, no other task runs on a sleeper's CPU.

use machine::Machine;
use sched::openbsd::{KernelLock, MpLock, SchedulerLock};
use sync::sleepq::asleep;
use sync::turnstile::Turnstiles;
use sync::watch::note_sleep;

/// Queues of `slpque` (`TABLESIZE`).
const QUEUES: usize = 128;

/// The scheduler of a machine that runs OpenBSD.
pub struct Scheduler<M: Machine> {
    pub kernel: &'static MpLock<M, KernelLock>,
    sched: &'static SchedulerLock<M>,
    /// `slpque`, guarded by `sched`. Its own locks are contended only while a sleeper is being
    /// enqueued.
    queues: Turnstiles<M>,
}

impl<M: Machine> Scheduler<M> {
    /// The machine's scheduler.
    pub fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| {
            let sched = SchedulerLock::of_machine();
            Scheduler {
                kernel: &sched.kernel,
                sched,
                queues: Turnstiles::new(QUEUES),
            }
        })
    }

    /// Sleeps on `key` until woken, if `still` holds under `SCHED_LOCK`. Releases `KERNEL_LOCK`
    /// meanwhile. Returns true if it slept.
    #[track_caller]
    pub fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        let pin = self.lock();
        let queue = self.queues.lock(key);
        if !still() {
            drop(queue);
            self.sched.lock.unlock();
            return false;
        }
        // The queue is locked until the task is in it, so a waker waits for that.
        self.switch(pin, || queue.wait());
        true
    }

    /// Acquires `SCHED_LOCK` at `splsched`: its holder is not preempted, since CPUs spin for it
    /// while pinned.
    #[track_caller]
    fn lock(&self) -> M::Pin {
        let pin = M::pin();
        self.sched.lock.lock();
        pin
    }

    /// Sleeps until the machine's clock reads `time` nanoseconds. Releases `KERNEL_LOCK` meanwhile.
    /// The clock's interrupt makes the task runnable, under `SCHED_LOCK`.
    #[track_caller]
    pub fn sleep_until(&self, time: u64) {
        let pin = self.lock();
        self.switch(pin, || M::sleep_until(time));
    }

    /// Releases all locks and blocks, then reacquires them (`mi_switch`). Called under
    /// `SCHED_LOCK`, which it releases.
    #[track_caller]
    fn switch(&self, pin: M::Pin, block: impl FnOnce()) {
        let depth = self.kernel.release_all();
        if self.sched.schedules() {
            // Whatever takes the task off its CPU from now on releases the lock.
            drop(pin);
            asleep::<M>(block);
            let _pin = M::pin();
            // The task did not switch, because it has been woken already.
            self.sched.lock.release_all();
        } else {
            self.sched.lock.unlock();
            drop(pin);
            asleep::<M>(block);
            self.resume();
        }
        note_sleep::<M>();
        self.kernel.lock_again(depth);
        if !self.sched.schedules() {
            self.resume();
        }
    }

    /// Takes the lock as the idle thread does, which finds the task in its CPU's run queue and
    /// switches to it, and as the task does to record that it runs.
    #[track_caller]
    fn resume(&self) {
        let _pin = self.lock();
        self.sched.lock.unlock();
    }

    /// Wakes the `count` tasks that have slept longest on `key`; returns how many there were.
    #[track_caller]
    pub fn wake(&self, key: *const (), count: usize) -> usize {
        let _pin = self.lock();
        let mut queue = self.queues.lock(key);
        let woken = (0..count).take_while(|_| queue.signal()).count();
        // The tasks are made runnable, and their CPUs told, under the lock.
        drop(queue);
        self.sched.lock.unlock();
        woken
    }
}

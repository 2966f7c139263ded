//! FreeBSD 12's scheduler (2018 to 2020): ULE, with a lock for each CPU.
//!
//! (sys/kern/sched_ule.c; hz is 1000, stathz 127.)
//!
//! # Protocol
//! A CPU's `tdq_lock` guards its queues and the words of the tasks that run or are queued there. A
//! switch (`sched_switch`) holds it from the choice until the next task runs and releases it. A
//! wake-up (`sched_wakeup`, `sched_add`) chooses a CPU by words it reads without locks, and takes
//! only that CPU's lock. A move from one CPU to another takes both.
//!
//! An idle CPU sets `tdq_cpu_idle` and reads its load once more; a waker that queues a task there
//! counts it and then reads `tdq_cpu_idle`:
//!
//! ```text
//! idle:       tdq_cpu_idle = 1; fence; if tdq_load > 0, look again; wait
//! tdq_notify: tdq_load += 1;    fence; if it is idle, interrupt it
//! ```
//! # Order
//! Tasks that sleep much more than they run are interactive and come first, by how interactive they
//! are; the others take turns, by how much they use the CPU (modules `interact` and `runq`). A task
//! in the kernel that has slept ranks at least as high as the best of those others
//! (`static_boost`), until it is back in user mode. A woken task preempts on another CPU only if
//! that CPU is idle, or if the task is interactive and that CPU's task is not; on the waker's own
//! CPU it preempts any task of lower rank.
//!
//! # Omissions
//! - The topology: see module `pick`.
//! - Nice values, real-time and idle classes, interrupt threads, bound and pinned tasks, borrowed
//!   priorities: the machine's tasks have none of these. So the third run queue, for the idle
//!   class, is missing.
//! - An idle CPU does not spin before it waits (FreeBSD's does from about 10,000 switches a second,
//!   `sched_idlespins`) and is woken by an interrupt, never by a store to a word that it monitors
//!   (`cpu_idle_wakeup`); its clock does not tick.
//! - A round of balancing ends with the first CPU that must be interrupted, and CPU 0 begins none
//!   while it is idle.
//! - A thread in the kernel is taken off its CPU at safe points only; `sched_preempt` takes it off
//!   wherever it holds no spin lock.
//! - `sched_exit` gives a child's run time to its parent: the parent is not known then.
//! - Every wait is a sleep (`sched_sleep`), for locks too, which in FreeBSD do not count for the
//!   history.
//! - A task is back in user mode (`sched_userret`) when it goes on after a switch, or after a tick,
//!   not only when it leaves the kernel.

mod account;
mod balance;
mod entry;
mod interact;
mod pick;
mod runq;
mod tdq;

pub use entry::Entry;
pub use tdq::TdqLock;

use crate::{Leaving, Policy, TaskRef, Tick, Why};
use alloc::boxed::Box;
use interact::{HZ, MIN_BATCH, STATHZ, should_preempt};
use machine::{Atomic, Contexts, CpuRange, Ordering};
use sync::Padded;
use tdq::Tdq;

type Task<M> = TaskRef<M, Ule<M>>;

/// The number of the clock tick at time `now`.
fn ticks(now: u64) -> u32 {
    (now / (1_000_000_000 / u64::from(HZ))) as u32
}

/// The policy.
pub struct Ule<M: Contexts> {
    cpus: Box<[Padded<Tdq<M>>]>,
    /// `balance_ticks`: ticks of CPU 0's clock until [`Ule::balance_tick`] balances. Only CPU 0
    /// touches it.
    balance_in: M::AtomicU32,
}

impl<M: Contexts> Ule<M> {
    /// Takes the current task off the load if it leaves; else returns true if it goes on, with no
    /// other task to be considered.
    fn may_leave(&self, cpu: usize, task: Task<M>, leaving: Leaving, now: u64) -> bool {
        let tdq = &self.cpus[cpu];
        let entry = task.entry();
        entry.count(ticks(now), true);
        entry.set_left_at(ticks(now));
        let by_interrupt = tdq.by_interrupt.load(Ordering::Relaxed) != 0;
        let slice_over = tdq.slice_over.load(Ordering::Relaxed) != 0;
        for flag in [&tdq.by_interrupt, &tdq.slice_over, &tdq.wanted] {
            flag.store(0, Ordering::Relaxed);
        }
        if leaving.stays_ready() {
            // The task keeps its turn, unless it has woken the better task itself (`SW_PREEMPT`).
            entry.set_preempted(by_interrupt && !slice_over);
            return tdq.would_go_on(task);
        }
        if leaving != Leaving::Ends {
            entry.set_slept_at(ticks(now));
            entry.lift(MIN_BATCH);
        }
        tdq.leave();
        false
    }

    /// A task has come to `cpu`, whose lock is held. Returns that CPU if it must be told
    /// (`tdq_notify`, and `sched_setpreempt` for the caller's own).
    fn notify(&self, cpu: usize, task: Task<M>, here: usize) -> Option<usize> {
        let tdq = &self.cpus[cpu];
        let (priority, current) = (task.entry().priority(), tdq.running());
        if cpu == here {
            let wanted = priority < current;
            if wanted {
                tdq.wanted.store(1, Ordering::Relaxed);
            }
            return wanted.then_some(cpu);
        }
        if !should_preempt(priority, current, true) {
            return None;
        }
        // Pairs with the fence in `idle`: an idle CPU sees the load, or this CPU sees that it waits
        // and that no interrupt is on its way.
        M::fence(Ordering::SeqCst);
        let waits = tdq.current.get().is_some() || tdq.idle.load(Ordering::Relaxed) != 0;
        if !waits || tdq.interrupted.load(Ordering::Relaxed) != 0 {
            return None;
        }
        tdq.interrupted.store(1, Ordering::Relaxed);
        Some(cpu)
    }

    /// Chooses the next task of `cpu`, whose lock is held.
    fn choose(&self, cpu: usize, now: u64) -> Option<Task<M>> {
        let tdq = &self.cpus[cpu];
        let next = tdq.first();
        if let Some(task) = next {
            tdq.dequeue(task);
            task.entry().set_cpu(cpu);
            task.entry().count(ticks(now), false);
            self.start_clock(cpu, now);
        }
        tdq.run(next);
        next
    }
}

// SAFETY: `choose` returns only tasks that it takes out of a queue, where `ready` and `put_back`
// put them, under that queue's lock, which orders it; `give` moves them under both. A task that
// ends is in no queue, and no CPU's current one after `next`.
unsafe impl<M: Contexts> Policy<M> for Ule<M> {
    const NAME: &'static str = "freebsd";

    type Entry = Entry<M>;

    fn new(cpus: CpuRange) -> Self {
        let cpus: Box<[_]> = (0..cpus.len()).map(|cpu| Padded(Tdq::new(cpu))).collect();
        M::label_value(&*cpus, "tdq");
        Ule {
            cpus,
            balance_in: M::AtomicU32::new(STATHZ),
        }
    }

    fn entry() -> Entry<M> {
        Entry::new()
    }

    fn begin(&self, task: Task<M>, parent: Option<Task<M>>, now: u64) {
        self.fork(task, parent, now);
    }

    /// Takes the lock for a switch. The idle thread first looks at its load.
    fn lock(&self, cpu: usize) {
        let tdq = &self.cpus[cpu];
        if tdq.current.get().is_some() || tdq.load() > 0 {
            tdq.lock.lock().hand_over();
            tdq.held.store(1, Ordering::Relaxed);
        }
    }

    fn unlock(&self, cpu: usize) {
        let tdq = &self.cpus[cpu];
        if tdq.held.load(Ordering::Relaxed) == 0 {
            return;
        }
        tdq.held.store(0, Ordering::Relaxed);
        let lock = tdq.lock.take_over();
        if let Some(task) = tdq.current.get() {
            task.entry().to_user();
            tdq.set_best();
        }
        drop(lock);
    }

    fn next(&self, cpu: usize, current: Option<(Task<M>, Leaving)>, now: u64) -> Option<Task<M>> {
        let tdq = &self.cpus[cpu];
        tdq.idle.store(0, Ordering::Relaxed);
        if let Some((task, leaving)) = current {
            if self.may_leave(cpu, task, leaving, now) {
                return None;
            }
            // `tdq_trysteal`, without the lock.
            if tdq.load() == 0 {
                drop(tdq.lock.take_over());
                if !self.idled(cpu) {
                    tdq.lock.lock().hand_over();
                }
            }
        } else {
            tdq.interrupted.store(0, Ordering::Relaxed);
            if tdq.held.load(Ordering::Relaxed) == 0 {
                if !self.idled(cpu) {
                    return None;
                }
                tdq.held.store(1, Ordering::Relaxed);
            }
        }
        self.choose(cpu, now)
    }

    fn put_back(&self, cpu: usize, task: Task<M>, _leaving: Leaving, _now: u64) -> Option<usize> {
        // The task is still counted.
        self.cpus[cpu].enqueue(task);
        None
    }

    fn ready(&self, task: Task<M>, here: usize, why: Why, now: u64) -> Option<usize> {
        if why == Why::Woken {
            self.woken(task, now);
        }
        let cpu = self.pick(task, here, now);
        let tdq = &self.cpus[cpu];
        let lock = tdq.lock.lock();
        task.entry().set_cpu(cpu);
        tdq.add(task);
        let kick = self.notify(cpu, task, here);
        drop(lock);
        kick
    }

    fn idle(&self, cpu: usize) -> bool {
        let tdq = &self.cpus[cpu];
        tdq.idle.store(1, Ordering::Relaxed);
        // Pairs with the fence in `notify`.
        M::fence(Ordering::SeqCst);
        tdq.load() == 0
    }

    fn tick(&self, cpu: usize, current: Task<M>, now: u64) -> Tick {
        let kick = self.clock(cpu, current, now);
        let tdq = &self.cpus[cpu];
        let lock = tdq.lock.lock();
        // `sched_preempt`, after an interrupt by another CPU.
        let interrupted = tdq.interrupted.load(Ordering::Relaxed) != 0;
        tdq.interrupted.store(0, Ordering::Relaxed);
        let better = interrupted && current.entry().priority() > tdq.best();
        if better {
            tdq.by_interrupt.store(1, Ordering::Relaxed);
        }
        drop(lock);
        let preempt = better || tdq.wanted.load(Ordering::Relaxed) != 0;
        Tick { preempt, kick }
    }

    fn deadline(&self, cpu: usize, _current: Task<M>, _now: u64) -> u64 {
        self.cpus[cpu].next_tick.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::NonNull;
    use sim::Sim;

    /// A task that an interrupt preempts comes back before its equals; one that has woken a better
    /// task comes back behind them.
    #[test]
    fn who_wakes_a_better_task_loses_its_turn() {
        let policy = Ule::<Sim>::new(CpuRange::claim(1));
        let place = Box::leak(Box::new(crate::Task::new(0)));
        // SAFETY: it stays forever.
        let task: Task<Sim> = unsafe { TaskRef::new(NonNull::from(place)) };
        policy.begin(task, None, 0);
        let keeps_its_turn = |by_interrupt| {
            policy.cpus[0]
                .by_interrupt
                .store(by_interrupt, Ordering::Relaxed);
            policy.may_leave(0, task, Leaving::Preempted, 0);
            task.entry().is_preempted()
        };
        assert!(keeps_its_turn(1));
        assert!(!keeps_its_turn(0));
    }
}

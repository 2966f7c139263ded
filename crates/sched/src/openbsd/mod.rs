//! OpenBSD 7.0's scheduler (autumn 2021): one lock for everything.
//!
//! (sys/kern/sched_bsd.c 1.70, kern_sched.c, kern_synch.c; hz is 100.)
//!
//! # Protocol
//! `SCHED_LOCK` ([`SchedulerLock`]) guards the queues of all CPUs, every task's words, and the
//! sleep queues. It is taken for each wake-up (`wakeup_n`, `setrunnable`), for each switch, each
//! fourth tick (`schedclock`) and each second (`schedcpu`). A switch (`mi_switch`) keeps it from
//! the choice of the next task until that one runs and releases it; then the same task takes it
//! once more, as `mi_switch`'s callers expect, and releases it.
//!
//! ```text
//! sleep, preempt, yield: SCHED_LOCK; choose; switch;  the next one: unlock; SCHED_LOCK; unlock
//! wake-up:               SCHED_LOCK; choose a CPU; queue there; unlock; tell that CPU
//! an idle CPU:           a switch, when its own queues are not empty
//! ```
//! An idle CPU takes the lock only when another CPU has queued a task on it: it looks at its queues
//! without the lock. It steals from others once, in the switch to the idle thread.
//!
//! Each CPU has 32 queues by priority, first come first served (module `priority` says what a
//! priority is). A woken task's priority is higher than that of any task in user mode, so it takes
//! over the CPU it is queued on, or an idle one (`need_resched`, `cpu_unidle`).
//!
//! # Omissions
//! - Nice values, bound tasks, halted CPUs: the machine has none of these.
//! - `SPCF_SHOULDYIELD` and `SPCF_SEENRR`, by which long operations inside the kernel learn that
//!   they should make way: there are no such operations.
//! - `scheduler_wait_hook`, which charges a child's estimate to its parent, runs when the child
//!   ends, not when the parent has waited for it.
//! - An idle CPU's clock does not tick: it would find nothing to charge.
//! - A task that held `KERNEL_LOCK` takes it again after the last of the acquisitions above; in
//!   OpenBSD it does so before.

mod choose;
mod clock;
mod cpus;
mod entry;
mod lock;
mod mplock;
mod priority;

pub use entry::Entry;
pub use lock::{KernelLock, SchedLock, SchedulerLock};
pub use mplock::MpLock;

use crate::cpuset::CpuSet;
use crate::{Leaving, Policy, TaskRef, Tick, Why};
use alloc::boxed::Box;
use clock::TICK;
use cpus::Cpu;
use machine::{Atomic, Contexts, CpuRange, Ordering};
use priority::{PWAIT, decayed_asleep, queue};
use sync::Padded;

type Task<M> = TaskRef<M, OpenBsd<M>>;

/// The policy.
pub struct OpenBsd<M: Contexts> {
    cpus: Box<[Padded<Cpu<M>>]>,
    /// `sched_idle_cpus`: CPUs whose idle thread waits. Each CPU changes its own bit.
    idle_cpus: CpuSet<M>,
    /// `sched_queued_cpus`: CPUs with queued tasks. Under the lock.
    queued_cpus: CpuSet<M>,
    /// `averunnable.ldavg[0]`. Written by the CPU that does the second's work
    /// ([`OpenBsd::seconds`]).
    load: M::AtomicU64,
    /// How often `schedcpu` has run. Written by the CPU that does the second's work.
    passes: M::AtomicU32,
    /// When `schedcpu` runs next.
    next_second: M::AtomicU64,
    /// The machine's lock.
    lock: &'static MpLock<M, SchedLock>,
}

impl<M: Contexts> OpenBsd<M> {
    /// Adds a task to a CPU's queue of this priority, under the lock (`setrunqueue`). Returns the
    /// CPU if it must be told: because it is idle, or its current task should be preempted.
    fn enqueue(&self, cpu: usize, task: Task<M>, priority: u32) -> Option<usize> {
        task.entry().set_cpu(cpu);
        task.entry().set_queued_at(priority);
        let there = &self.cpus[cpu];
        there.add(task);
        self.queued_cpus.insert(cpu);
        // Pairs with the fence in `idle`: the CPU sees the task, or this CPU sees that it is idle.
        M::fence(Ordering::SeqCst);
        if self.idle_cpus.contains(cpu) {
            return Some(cpu);
        }
        if priority >= there.priority.load(Ordering::Relaxed) {
            return None;
        }
        there.wanted.store(1, Ordering::Relaxed);
        Some(cpu)
    }

    /// Takes a task out of its queue, under the lock (`remrunqueue`).
    fn remove(&self, task: Task<M>) {
        let cpu = task.entry().cpu();
        if self.cpus[cpu].remove(task) {
            self.queued_cpus.remove(cpu);
        }
    }

    /// Returns true if a task has slept for a second or more.
    fn slept_long(&self, task: Task<M>) -> bool {
        task.entry()
            .seconds_asleep(self.passes.load(Ordering::Relaxed))
            > 0
    }

    /// Takes the best queued task for `cpu`, or steals one if it has none; `None` if `current`,
    /// which could go on, is in a better queue, or no other task is queued here
    /// (`sched_chooseproc`).
    fn choose(&self, cpu: usize, current: Option<Task<M>>) -> Option<Task<M>> {
        let here = &self.cpus[cpu];
        let Some(best) = here.best() else {
            return if current.is_none() {
                self.steal(cpu)
            } else {
                None
            };
        };
        // Put back, the current task would be at the end of its queue.
        if current.is_some_and(|task| queue(task.entry().user_priority()) < best) {
            return None;
        }
        let task = here.tasks(best).next()?;
        self.remove(task);
        Some(task)
    }

    /// Makes `task` the current one of `cpu`.
    fn run(&self, cpu: usize, task: Task<M>, now: u64) {
        let here = &self.cpus[cpu];
        task.entry().set_cpu(cpu);
        here.priority
            .store(task.entry().user_priority(), Ordering::Relaxed);
        if self.idle_cpus.contains(cpu) {
            self.idle_cpus.remove(cpu);
        }
        // The clocks of the CPUs were started one after the other, and stand still in idle ones.
        if here.clock.next.load(Ordering::Relaxed) <= now && here.current.get().is_none() {
            let phase = TICK * cpu as u64 / self.cpus.len() as u64;
            let next = (now + TICK - phase) / TICK * TICK + phase;
            here.clock.next.store(next, Ordering::Relaxed);
        }
    }
}

// SAFETY: `choose` returns only tasks that it takes out of a queue, where `ready` and `put_back`
// put them, and all of it happens under one lock, which orders it. A task that ends is in no queue,
// and no CPU's current one after `next`.
unsafe impl<M: Contexts> Policy<M> for OpenBsd<M> {
    const NAME: &'static str = "openbsd";

    type Entry = Entry<M>;

    fn new(cpus: CpuRange) -> Self {
        let cpus = cpus.len();
        let locks = SchedulerLock::schedule();
        let schedstate: Box<[_]> = (0..cpus).map(|_| Padded(Cpu::new())).collect();
        M::label_value(&*schedstate, "schedstate_percpu");
        OpenBsd {
            cpus: schedstate,
            idle_cpus: CpuSet::new(cpus),
            queued_cpus: CpuSet::new(cpus),
            load: M::AtomicU64::new(0),
            passes: M::AtomicU32::new(0),
            next_second: M::AtomicU64::new(0),
            lock: &locks.lock,
        }
    }

    fn entry() -> Entry<M> {
        Entry::new()
    }

    fn begin(&self, task: Task<M>, parent: Option<Task<M>>, _now: u64) {
        task.entry().begin(parent, task.cpu());
    }

    /// Takes the lock for a switch. The idle thread has looked at its queues before.
    fn lock(&self, cpu: usize) {
        let here = &self.cpus[cpu];
        if here.current.get().is_some() || here.best().is_some() {
            self.lock.lock_for_switch();
            here.held.store(1, Ordering::Relaxed);
        }
    }

    /// Does what `mi_switch` and its caller do at their end. A new task has not called them.
    fn unlock(&self, cpu: usize) {
        let here = &self.cpus[cpu];
        if here.held.load(Ordering::Relaxed) == 0 {
            return;
        }
        here.held.store(0, Ordering::Relaxed);
        let lock = self.lock;
        let current = here.current.get();
        lock.unlock_after_switch();
        if let Some(task) = current
            && task.entry().fresh.load(Ordering::Relaxed) != 0
        {
            return task.entry().fresh.store(0, Ordering::Relaxed);
        }
        lock.lock();
        if let Some(task) = current {
            here.priority
                .store(task.entry().user_priority(), Ordering::Relaxed);
        }
        lock.unlock();
    }

    fn next(&self, cpu: usize, current: Option<(Task<M>, Leaving)>, now: u64) -> Option<Task<M>> {
        let here = &self.cpus[cpu];
        if here.held.load(Ordering::Relaxed) == 0 {
            return None;
        }
        here.wanted.store(0, Ordering::Relaxed);
        let stays = current.filter(|(_, leaving)| leaving.stays_ready());
        match current {
            Some((task, Leaving::Parks | Leaving::Sleeps)) => {
                task.entry().sleep(self.passes.load(Ordering::Relaxed));
            }
            Some((task, Leaving::Ends)) => task.entry().end(),
            _ => {}
        }
        let next = self.choose(cpu, stays.map(|(task, _)| task));
        if let Some(task) = next {
            self.run(cpu, task, now);
        }
        if next.is_some() || stays.is_none() {
            here.current.set(next);
        }
        next
    }

    fn put_back(&self, cpu: usize, task: Task<M>, _leaving: Leaving, _now: u64) -> Option<usize> {
        let priority = task.entry().user_priority();
        // The current task was chosen after a comparison with this one.
        self.enqueue(cpu, task, priority);
        None
    }

    /// Queues a task for `fork` or `wakeup`. A wake-up queues it by its priority in the kernel, and
    /// then computes the one in user mode.
    fn ready(&self, task: Task<M>, _here: usize, why: Why, _now: u64) -> Option<usize> {
        let lock = self.lock;
        lock.lock();
        let entry = task.entry();
        let kick = match why {
            Why::New => self.enqueue(self.choose_cpu_fork(), task, entry.user_priority()),
            Why::Woken => {
                let kick = self.enqueue(self.choose_cpu(task), task, PWAIT);
                let seconds = entry.seconds_asleep(self.passes.load(Ordering::Relaxed));
                let load = self.load.load(Ordering::Relaxed);
                entry.set_estcpu(decayed_asleep(entry.estcpu(), u64::from(seconds), load));
                entry.wake();
                kick
            }
        };
        lock.unlock();
        kick
    }

    fn idle(&self, cpu: usize) -> bool {
        self.idle_cpus.insert(cpu);
        // Pairs with the fence in `enqueue`.
        M::fence(Ordering::SeqCst);
        self.cpus[cpu].best().is_none()
    }

    fn tick(&self, cpu: usize, current: Task<M>, now: u64) -> Tick {
        let turn = self.clocks(cpu, current, now);
        self.seconds(now);
        let here = &self.cpus[cpu];
        // `userret`.
        here.priority
            .store(current.entry().user_priority(), Ordering::Relaxed);
        Tick {
            preempt: turn || here.wanted.load(Ordering::Relaxed) != 0,
            kick: None,
        }
    }

    fn deadline(&self, cpu: usize, _current: Task<M>, _now: u64) -> u64 {
        self.cpus[cpu].clock.next.load(Ordering::Relaxed)
    }
}

//! Linux 3.0's scheduler (2011) with 2.6.39's wake-up: CFS, with a lock for each CPU.
//!
//! (kernel/sched.c, kernel/sched_fair.c, kernel/sched_features.h; HZ is 1000.)
//!
//! # Protocol
//! A CPU's `rq->lock` guards its run queue and the words of the tasks there. A switch (`schedule`)
//! holds it from the choice until the next task runs and releases it (`finish_lock_switch`). A
//! wake-up (`try_to_wake_up`) chooses a CPU by words it reads without locks, and takes that CPU's
//! lock. A move from one CPU to another takes both.
//!
//! A CPU without tasks goes to sleep; a waker that makes a task ready there notices:
//!
//! ```text
//! idle:           add to idle_cpus; fence; if nr_running > 0, look again; wait
//! enqueue_task:   nr_running += 1;  fence; if the CPU is there, interrupt it
//! ```
//! # Order
//! A CPU runs the ready task with the least virtual time, for a share of the latency (module
//! `fair`). A woken task preempts the current one if that is ahead by more than the wake-up
//! granularity. It is then the next to run, unless it is as far ahead of another ready task. Sleep
//! is worth half the latency at most.
//!
//! # Omissions
//! - Nice values, scheduling groups, batch, idle and real-time classes: the machine's tasks have
//!   none of these, so every load is a number of tasks.
//! - Domains: see module `wake`. Loads are those of the moment (`weighted_cpuload`), as Linux's are
//!   for wake-ups, new tasks and idle CPUs; a busy CPU that balances looks at averages over ticks
//!   (`busy_idx`).
//! - Buddies except the one that preempts (`LAST_BUDDY` with eight tasks or more,
//!   `CACHE_HOT_BUDDY`): they save misses on a task's own memory, which are not modelled here.
//!   2.6.39 has no `next` buddy.
//! - In 3.0 a wake-up on another CPU leaves the task in a list there and interrupts that CPU if the
//!   list was empty; the CPU then takes its own lock (`TTWU_QUEUE`). Here the waker takes that
//!   lock, as in 2.6.39. Not taken here: the lock of the task's last CPU, which 2.6.39 takes first,
//!   and the task's own (`pi_lock`), which 3.0 takes.
//! - Wake-ups that announce the waker's sleep (`WF_SYNC`: pipes, sockets), a second choice of the
//!   CPU at exec (`sched_exec`), autogroups.
//! - Linux lets two CPUs with tasks interrupt idle ones, the second even if no task waits there.
//! - The migration thread, which moves even a running task when all else fails.

mod balance;
mod entry;
mod fair;
mod rq;
mod tree;
mod wake;

pub use entry::Entry;
pub use rq::RqLock;

use crate::cpuset::CpuSet;
use crate::{Leaving, Policy, TaskRef, Tick, Why};
use alloc::boxed::Box;
use balance::Looks;
use fair::{Tunables, average_idle};
use machine::{Atomic, Contexts, CpuRange, Ordering};
use rq::Rq;
use sync::Padded;

type Task<M> = TaskRef<M, Cfs<M>>;

/// A tick, 1/HZ. All CPUs' ticks come at the same time.
const TICK: u64 = 1_000_000;

/// The policy.
pub struct Cfs<M: Contexts> {
    rqs: Box<[Padded<Rq<M>>]>,
    tunables: Tunables,
    /// `nohz.idle_cpus_mask`: CPUs that wait for an interrupt. Each changes its own bit.
    idle_cpus: CpuSet<M>,
    /// `nohz.next_balance`: when a CPU may next be interrupted to look for tasks.
    next_kick: M::AtomicU64,
}

impl<M: Contexts> Cfs<M> {
    /// Returns true if a task that has come to `cpu`, whose lock is held, is to preempt the current
    /// one (`check_preempt_wakeup`).
    fn check_preempt(&self, cpu: usize, task: Task<M>) -> bool {
        let rq = &self.rqs[cpu];
        let Some(current) = rq.current.get() else {
            return false;
        };
        let wanted = rq.wanted.load(Ordering::Relaxed) == 0
            && self
                .tunables
                .preempts(current.entry().vruntime(), task.entry().vruntime());
        if wanted {
            rq.wanted.store(1, Ordering::Relaxed);
            rq.buddy.set(Some(task));
        }
        wanted
    }

    /// Ends a CPU's idle time and averages it (`ttwu_post_activation`).
    fn end_idle(&self, rq: &Rq<M>, now: u64) {
        let since = rq.idle_since.load(Ordering::Relaxed);
        if since == 0 {
            return;
        }
        let average = rq.average_idle.load(Ordering::Relaxed);
        let idle = now.saturating_sub(since);
        rq.average_idle
            .store(average_idle(average, idle), Ordering::Relaxed);
        rq.idle_since.store(0, Ordering::Relaxed);
    }

    /// Returns true if the current task, which could go on, does go on: it is the first, and no
    /// buddy comes before it.
    fn goes_on(&self, rq: &Rq<M>, task: Task<M>, leaving: Leaving) -> bool {
        let current = task.entry().vruntime();
        let is_first = rq.first().is_none_or(|first| {
            let first = first.entry().vruntime();
            match leaving {
                Leaving::Yields => self.tunables.goes_on(current, first),
                _ => current < first,
            }
        });
        let is_fair = |buddy: Task<M>| !self.tunables.preempts(buddy.entry().vruntime(), current);
        is_first && !rq.buddy.get().is_some_and(is_fair)
    }

    /// Takes the current task out of the run queue if it leaves; else returns true if it goes on,
    /// with no other task to be considered.
    fn may_leave(&self, cpu: usize, task: Task<M>, leaving: Leaving, now: u64) -> bool {
        let rq = &self.rqs[cpu];
        rq.update(now);
        if leaving.stays_ready() {
            rq.wanted.store(0, Ordering::Relaxed);
            let goes_on = self.goes_on(rq, task, leaving);
            if goes_on {
                // Being chosen again gives it a whole share.
                task.entry().start(now);
            }
            return goes_on;
        }
        rq.leave(task);
        if rq.running() == 0 {
            rq.idle_since.store(now, Ordering::Relaxed);
            drop(rq.lock.take_over());
            self.idle_balance(cpu, now);
            rq.lock.lock().hand_over();
        }
        false
    }
}

// SAFETY: `choose` returns only tasks that it takes out of a tree, where `ready` and `put_back` put
// them, under that run queue's lock, which orders it; `move_tasks` moves them under both. A task
// that ends is in no run queue, and no CPU's current one after `next`.
unsafe impl<M: Contexts> Policy<M> for Cfs<M> {
    const NAME: &'static str = "linux";

    type Entry = Entry<M>;

    fn new(cpus: CpuRange) -> Self {
        let rqs: Box<[_]> = (0..cpus.len()).map(|_| Padded(Rq::new())).collect();
        M::label_value(&*rqs, "rq");
        Cfs {
            rqs,
            tunables: Tunables::of(cpus.len()),
            idle_cpus: CpuSet::new(cpus.len()),
            next_kick: M::AtomicU64::new(0),
        }
    }

    fn entry() -> Entry<M> {
        Entry::new()
    }

    /// `task_fork_fair`: the child begins behind its parent and the tasks that are ready there.
    fn begin(&self, task: Task<M>, parent: Option<Task<M>>, now: u64) {
        let cpu = task.cpu();
        let rq = &self.rqs[cpu];
        let entry = task.entry();
        // It has never run: no cache has its data.
        entry.start(0);
        entry.set_cpu(cpu);
        let lock = rq.lock.lock();
        rq.update(now);
        let minimum = rq.minimum();
        let parents = parent.map_or(minimum, |parent| parent.entry().vruntime());
        let placed = self.tunables.placed(parents, minimum, Some(rq.running()));
        drop(lock);
        entry.set_vruntime(placed - minimum);
    }

    /// Takes the lock for a switch. The idle task first looks for tasks to run.
    fn lock(&self, cpu: usize) {
        let rq = &self.rqs[cpu];
        if !rq.is_idle() || rq.running() > 0 {
            rq.lock.lock().hand_over();
            rq.held.store(1, Ordering::Relaxed);
        }
    }

    fn unlock(&self, cpu: usize) {
        let rq = &self.rqs[cpu];
        if rq.held.load(Ordering::Relaxed) != 0 {
            rq.held.store(0, Ordering::Relaxed);
            drop(rq.lock.take_over());
        }
    }

    fn next(&self, cpu: usize, current: Option<(Task<M>, Leaving)>, now: u64) -> Option<Task<M>> {
        let rq = &self.rqs[cpu];
        if let Some((task, leaving)) = current {
            if self.may_leave(cpu, task, leaving, now) {
                return None;
            }
        } else if rq.held.load(Ordering::Relaxed) == 0 {
            // An idle CPU looks for tasks only if it is asked to (`nohz_idle_balance`).
            if rq.kicked.load(Ordering::Relaxed) == 0 {
                return None;
            }
            rq.kicked.store(0, Ordering::Relaxed);
            self.load_balance(cpu, Looks::Regularly, now);
            if rq.running() == 0 {
                return None;
            }
            rq.lock.lock().hand_over();
            rq.held.store(1, Ordering::Relaxed);
        }
        let next = rq.choose(self.tunables, now);
        if current.is_none() && next.is_some() {
            self.idle_cpus.remove(cpu);
            rq.next_tick
                .store((now / TICK + 1) * TICK, Ordering::Relaxed);
        }
        next
    }

    fn put_back(&self, cpu: usize, task: Task<M>, _leaving: Leaving, _now: u64) -> Option<usize> {
        self.rqs[cpu].put_back(task);
        None
    }

    fn ready(&self, task: Task<M>, here: usize, why: Why, now: u64) -> Option<usize> {
        let entry = task.entry();
        let cpu = match why {
            Why::New => self.select_fork(here),
            Why::Woken => {
                // `task_waking_fair`: it takes its lead, or its lag, to the other CPU.
                let minimum = self.rqs[entry.cpu()].minimum();
                entry.set_vruntime(entry.vruntime() - minimum);
                self.select(task, here)
            }
        };
        let rq = &self.rqs[cpu];
        let lock = rq.lock.lock();
        entry.set_cpu(cpu);
        let vruntime = entry.vruntime() + rq.minimum();
        rq.update(now);
        entry.set_vruntime(match why {
            Why::New => vruntime,
            Why::Woken => self.tunables.placed(vruntime, rq.minimum(), None),
        });
        rq.add(task);
        if why == Why::Woken {
            self.end_idle(rq, now);
        }
        let preempts = self.check_preempt(cpu, task);
        drop(lock);
        // Pairs with the fence in `idle`.
        M::fence(Ordering::SeqCst);
        (preempts || self.idle_cpus.contains(cpu)).then_some(cpu)
    }

    fn idle(&self, cpu: usize) -> bool {
        self.idle_cpus.insert(cpu);
        // Pairs with the fence in `ready`.
        M::fence(Ordering::SeqCst);
        self.rqs[cpu].running() == 0
    }

    /// `scheduler_tick`.
    fn tick(&self, cpu: usize, current: Task<M>, now: u64) -> Tick {
        let rq = &self.rqs[cpu];
        let mut kick = None;
        let due = rq.next_tick.load(Ordering::Relaxed) <= now;
        if due {
            rq.next_tick
                .store((now / TICK + 1) * TICK, Ordering::Relaxed);
            let lock = rq.lock.lock();
            rq.update(now);
            let entry = current.entry();
            let over = rq.first().is_some_and(|next| {
                let (current, next) = (entry.vruntime(), next.entry().vruntime());
                let ran = entry.ran();
                self.tunables.is_over(ran, rq.running(), current, next)
            });
            if over {
                rq.wanted.store(1, Ordering::Relaxed);
            }
            drop(lock);
            self.rebalance(cpu, now);
            if rq.running() > 1 {
                kick = self.kick_idle(now);
            }
        }
        let preempt = rq.wanted.load(Ordering::Relaxed) != 0;
        Tick { preempt, kick }
    }

    fn deadline(&self, cpu: usize, _current: Task<M>, _now: u64) -> u64 {
        self.rqs[cpu].next_tick.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::NonNull;
    use sim::Sim;

    const MS: u64 = 1_000_000;

    /// A task with this virtual time, in milliseconds.
    fn task(vruntime: i64) -> Task<Sim> {
        let place = Box::leak(Box::new(crate::Task::new(0)));
        // SAFETY: it stays forever.
        let task: Task<Sim> = unsafe { TaskRef::new(NonNull::from(place)) };
        task.entry().set_vruntime(vruntime * MS as i64);
        task
    }

    fn policy() -> Cfs<Sim> {
        Cfs::new(CpuRange::claim(1))
    }

    #[test]
    fn the_task_that_preempts_is_next_unless_it_is_far_behind() {
        let policy = policy();
        let rq = &policy.rqs[0];
        let [first, woken, current] = [0, 1, 4].map(task);
        rq.add(current);
        assert!(rq.choose(policy.tunables, 0) == Some(current));
        rq.add(first);
        rq.add(woken);
        assert!(rq.next(policy.tunables) == Some(first));
        assert!(policy.check_preempt(0, woken));
        assert!(rq.next(policy.tunables) == Some(woken));
        assert!(!policy.goes_on(rq, current, Leaving::Preempted));
        first.entry().set_vruntime(-(MS as i64));
        assert!(rq.next(policy.tunables) == Some(first), "2 ms behind");
    }

    #[test]
    fn a_task_that_is_chosen_again_has_a_whole_share() {
        let policy = policy();
        let (current, other) = (task(0), task(9));
        let rq = &policy.rqs[0];
        rq.add(current);
        rq.add(other);
        assert!(rq.choose(policy.tunables, 0) == Some(current));
        rq.update(4 * MS);
        assert_eq!(current.entry().ran(), 4 * MS);
        assert!(policy.may_leave(0, current, Leaving::Preempted, 4 * MS));
        assert_eq!(current.entry().ran(), 0);
    }

    #[test]
    fn a_cpu_that_finds_loads_even_looks_less_often() {
        let policy = Cfs::<Sim>::new(CpuRange::claim(2));
        let interval = || policy.rqs[0].interval.load(Ordering::Relaxed);
        policy.rqs[0].failed.store(3, Ordering::Relaxed);
        for expected in [2, 4, 4] {
            policy.load_balance(0, Looks::Regularly, 0);
            assert_eq!(interval(), expected);
        }
        assert_eq!(policy.rqs[0].failed.load(Ordering::Relaxed), 0);
    }
}

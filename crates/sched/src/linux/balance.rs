//! Tasks that change CPUs: a CPU that runs out of tasks looks for some (`idle_balance`), and so does each
//! from time to time (`rebalance_domains`, `load_balance`).

use super::fair::{MIGRATION_COST, pulled};
use super::rq::RqGuard;
use super::{Cfs, TICK, Task};
use machine::{Atomic, Contexts, Ordering};

/// `cache_nice_tries` of `SD_CPU_INIT`: after so many failures tasks are moved that are in caches.
const NICE_TRIES: u32 = 1;
/// A CPU with tasks looks for more every `balance_interval` (1 ms) × `busy_factor` (64).
const BUSY_INTERVAL: u64 = 64_000_000;

/// Why a CPU looks for tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// It has just run out of them (`CPU_NEWLY_IDLE`).
    NewlyIdle,
    /// It is idle, or busy, and it is time to (`CPU_IDLE`, `CPU_NOT_IDLE`).
    Regularly,
}

impl<M: Contexts> Cfs<M> {
    /// `cpu` has run out of tasks, and holds no lock. Whether to look for some: not if it is usually idle
    /// for a short time only.
    pub(super) fn idle_balance(&self, cpu: usize, now: u64) {
        let rq = &self.rqs[cpu];
        if rq.average_idle.load(Ordering::Relaxed) >= MIGRATION_COST {
            self.load_balance(cpu, Looks::NewlyIdle, now);
        }
    }

    /// The tick on a CPU with tasks: looks for more, if it is time to. Returns whether the current one
    /// is to make way.
    pub(super) fn rebalance(&self, cpu: usize, now: u64) {
        let rq = &self.rqs[cpu];
        if now >= rq.next_balance.load(Ordering::Relaxed) {
            rq.next_balance
                .store(now + BUSY_INTERVAL, Ordering::Relaxed);
            self.load_balance(cpu, Looks::Regularly, now);
        }
    }

    /// The tick on a CPU with waiting tasks: an idle CPU, whose clock stands still, is to look for some
    /// (`nohz_balancer_kick`). One in a tick, for all.
    pub(super) fn kick_idle(&self, now: u64) -> Option<usize> {
        let due = self.next_kick.load(Ordering::Relaxed);
        if now < due {
            return None;
        }
        let idle = self.idle_cpus.iter().next()?;
        // Relaxed: one CPU wins, and nothing hangs on it.
        self.next_kick
            .compare_exchange(due, now + TICK, Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        self.rqs[idle].kicked.store(1, Ordering::Relaxed);
        Some(idle)
    }

    /// Moves tasks from the CPU with the most to `cpu`, if it has too few. No lock is held.
    pub(super) fn load_balance(&self, cpu: usize, looks: Looks, now: u64) {
        let load = |&cpu: &usize| self.rqs[cpu].running();
        let all = (0..self.rqs.len()).map(|cpu| load(&cpu)).sum();
        let others = (0..self.rqs.len()).rev().filter(|&other| other != cpu);
        let Some(busiest) = others.max_by_key(load) else {
            return;
        };
        let cpus = self.rqs.len() as u64;
        if pulled(load(&cpu), load(&busiest), all, cpus) == 0 {
            return;
        }
        let locks = self.lock_pair(cpu, busiest);
        let wanted = pulled(load(&cpu), load(&busiest), all, cpus);
        let moved = self.move_tasks(busiest, cpu, wanted, now);
        drop(locks);
        let failed = &self.rqs[cpu].failed;
        if moved > 0 {
            failed.store(0, Ordering::Relaxed);
        } else if looks == Looks::Regularly && wanted > 0 {
            failed.store(failed.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The locks of two run queues (`double_rq_lock`), in the order of the CPUs.
    fn lock_pair(&self, one: usize, other: usize) -> [RqGuard<'_, M>; 2] {
        let first = self.rqs[one.min(other)].lock.lock();
        let second = self.rqs[one.max(other)].lock.lock_second();
        [first, second]
    }

    /// Moves up to `count` tasks, the latest first, but none that has run just now, unless too many
    /// attempts have failed (`can_migrate_task`). Both locks are held. Returns how many.
    fn move_tasks(&self, from: usize, to: usize, count: u64, now: u64) -> u64 {
        let (source, target) = (&self.rqs[from], &self.rqs[to]);
        let force = target.failed.load(Ordering::Relaxed) > NICE_TRIES;
        let is_hot = |task: &Task<M>| now < task.entry().counted() + MIGRATION_COST;
        target.update(now);
        let mut moved = 0;
        for task in source.ready_tasks() {
            if moved == count {
                break;
            }
            if !force && is_hot(&task) {
                continue;
            }
            source.remove(task);
            let entry = task.entry();
            entry.set_vruntime(entry.vruntime() - source.minimum() + target.minimum());
            entry.set_cpu(to);
            target.add(task);
            self.check_preempt(to, task);
            moved += 1;
        }
        if moved > 0 {
            for rq in [source, target] {
                rq.average_idle.store(2 * MIGRATION_COST, Ordering::Relaxed);
            }
            target.idle_since.store(0, Ordering::Relaxed);
        }
        moved
    }
}

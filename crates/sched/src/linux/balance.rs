//! Migration: a CPU that runs out of tasks looks for some (`idle_balance`), and each CPU does so
//! from time to time (`rebalance_domains`, `load_balance`).

use super::fair::{MIGRATION_COST, pulled};
use super::rq::RqGuard;
use super::{Cfs, TICK, Task};
use machine::{Atomic, Contexts, Ordering};

/// `cache_nice_tries` of `SD_MC_INIT`: after this many failures cache-hot tasks migrate too.
const NICE_TRIES: u32 = 1;
/// `max_interval` of `SD_MC_INIT`, in ticks: a CPU looks less often as long as it finds nothing to
/// move.
const MAX_INTERVAL: u32 = 4;
/// `busy_factor` of `SD_MC_INIT`: how much less often a CPU with tasks looks.
const BUSY_FACTOR: u64 = 64;

/// Why a CPU looks for tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// It has just run out of tasks (`CPU_NEWLY_IDLE`).
    NewlyIdle,
    /// It is time to look, and the CPU is idle or busy (`CPU_IDLE`, `CPU_NOT_IDLE`).
    Regularly,
}

impl<M: Contexts> Cfs<M> {
    /// Looks for tasks for `cpu`, which has run out of them and holds no lock, unless it is usually
    /// idle for a short time only.
    pub(super) fn idle_balance(&self, cpu: usize, now: u64) {
        let rq = &self.rqs[cpu];
        if rq.average_idle.load(Ordering::Relaxed) >= MIGRATION_COST {
            self.load_balance(cpu, Looks::NewlyIdle, now);
        }
    }

    /// Looks for more tasks at the tick of a CPU that has some, if it is time to.
    pub(super) fn rebalance(&self, cpu: usize, now: u64) {
        let rq = &self.rqs[cpu];
        if now >= rq.next_balance.load(Ordering::Relaxed) {
            let interval = u64::from(rq.interval.load(Ordering::Relaxed));
            // At most HZ × CPUs / 10 ticks.
            let ticks = (BUSY_FACTOR * interval).min(100 * self.rqs.len() as u64);
            rq.next_balance.store(now + TICK * ticks, Ordering::Relaxed);
            self.load_balance(cpu, Looks::Regularly, now);
        }
    }

    /// Asks an idle CPU, whose clock stands still, to look for tasks, at the tick of a CPU where
    /// some wait (`nohz_balancer_kick`). All CPUs together ask one idle CPU per tick. Returns the
    /// CPU to interrupt.
    pub(super) fn kick_idle(&self, now: u64) -> Option<usize> {
        let due = self.next_kick.load(Ordering::Relaxed);
        if now < due {
            return None;
        }
        let idle = self.idle_cpus.iter().next()?;
        // Relaxed: one CPU wins, and no other memory depends on it.
        self.next_kick
            .compare_exchange(due, now + TICK, Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
        self.rqs[idle].kicked.store(1, Ordering::Relaxed);
        Some(idle)
    }

    /// Moves tasks from the CPU with the most to `cpu`, if it has too few. No lock is held.
    pub(super) fn load_balance(&self, cpu: usize, looks: Looks, now: u64) {
        let load = |&cpu: &usize| self.rqs[cpu].running();
        let cpus = self.rqs.len();
        let all = (0..cpus).map(|cpu| load(&cpu)).sum();
        // Of several CPUs with the same load, the next one after `cpu`.
        let others = (1..cpus).rev().map(|further| (cpu + further) % cpus);
        let Some(busiest) = others.max_by_key(load) else {
            return;
        };
        let (rq, cpus) = (&self.rqs[cpu], cpus as u64);
        if pulled(load(&cpu), load(&busiest), all, cpus) == 0 {
            let longer = 2 * rq.interval.load(Ordering::Relaxed);
            rq.interval
                .store(longer.min(MAX_INTERVAL), Ordering::Relaxed);
            rq.failed.store(0, Ordering::Relaxed);
            return;
        }
        rq.interval.store(1, Ordering::Relaxed);
        let locks = self.lock_pair(cpu, busiest);
        let wanted = pulled(load(&cpu), load(&busiest), all, cpus);
        let moved = self.move_tasks(busiest, cpu, wanted, now);
        if moved > 0 && looks == Looks::NewlyIdle {
            rq.idle_since.store(0, Ordering::Relaxed);
        }
        drop(locks);
        let failed = &rq.failed;
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

    /// Moves up to `count` tasks, the latest first, but no cache-hot task unless too many attempts
    /// have failed (`can_migrate_task`). Both locks are held. Returns the number of tasks moved.
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
        moved
    }
}

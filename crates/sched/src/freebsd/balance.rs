//! Migration: an idle CPU steals (`tdq_idled`), and about once a second CPU 0 evens out the loads
//! (`sched_balance`).

use super::Ule;
use super::interact::{STATHZ, should_preempt};
use super::tdq::TdqGuard;
use machine::{Atomic, Contexts, CpuSet, Ordering};

/// `steal_thresh`: a CPU with this load, one task running and one queued, has one that can be
/// stolen.
const STEAL: u32 = 2;

impl<M: Contexts> Ule<M> {
    /// Looks for a task for the idle CPU `cpu`, which holds no lock. Returns true if one is now in
    /// its queue; the queue's lock is then left held by the CPU.
    pub(super) fn idled(&self, cpu: usize) -> bool {
        let own = &self.cpus[cpu];
        let mut without = CpuSet::EMPTY;
        without.insert(cpu);
        loop {
            let high = self.highest(cpu, &without, STEAL);
            if own.load() > 0 {
                own.lock.lock().hand_over();
                return true;
            }
            let Some(high) = high else {
                return false;
            };
            let (own_lock, high_lock) = self.lock_pair(cpu, high);
            // Meanwhile a task may have come, or the other CPU's may have gone: then look again.
            let gives = self.cpus[high].load() >= STEAL;
            let found = own.load() > 0 || gives && self.give(high, cpu);
            drop(high_lock);
            if found {
                own_lock.hand_over();
                return true;
            }
        }
    }

    /// The locks of two CPUs (`tdq_lock_pair`), in the order of the CPUs.
    fn lock_pair(&self, one: usize, other: usize) -> (TdqGuard<'_, M>, TdqGuard<'_, M>) {
        let [first, second] = [one.min(other), one.max(other)].map(|cpu| &self.cpus[cpu].lock);
        let first = first.lock();
        let second = second.lock_second();
        if one < other {
            (first, second)
        } else {
            (second, first)
        }
    }

    /// Moves a task between two CPUs whose locks are held, if the first has one that may be stolen
    /// (`tdq_move`). Returns true if it did.
    fn give(&self, from: usize, to: usize) -> bool {
        let (from, target) = (&self.cpus[from], &self.cpus[to]);
        if from.load() <= target.load() {
            return false;
        }
        let Some(task) = from.to_steal() else {
            return false;
        };
        from.dequeue(task);
        from.leave();
        if task.entry().priority() == from.best() {
            from.set_best();
        }
        task.entry().set_cpu(to);
        target.add(task);
        true
    }

    /// Counts a tick of CPU 0's clock and from time to time evens out the loads; returns a CPU to
    /// interrupt (`sched_clock`, `sched_balance`).
    pub(super) fn balance_tick(&self) -> Option<usize> {
        let left = self.balance_in.load(Ordering::Relaxed).saturating_sub(1);
        if left > 0 {
            self.balance_in.store(left, Ordering::Relaxed);
            return None;
        }
        // Every 0.5 to 1.5 s.
        let next = STATHZ / 2 + self.cpus[0].random() % STATHZ;
        self.balance_in.store(next, Ordering::Relaxed);
        self.balance()
    }

    /// Moves a task from each CPU with many to one with few (`sched_balance_group`). Stops at the
    /// first CPU that must be interrupted: FreeBSD goes on, but here a tick can interrupt only one
    /// CPU, and an idle one steals by itself.
    fn balance(&self) -> Option<usize> {
        let mut givers_not = CpuSet::EMPTY;
        while let Some(high) = self.highest(0, &givers_not, STEAL) {
            givers_not.insert(high);
            let most = self.cpus[high].load().saturating_sub(1);
            let takers = |cpu: usize| !givers_not.contains(cpu);
            let low = self.lowest(0, takers, None, most, high)?;
            // A CPU that has received a task does not give one.
            givers_not.insert(low);
            let locks = self.lock_pair(high, low);
            let target = &self.cpus[low];
            let (idle, before) = (target.current.get().is_none(), target.best());
            let moved = self.give(high, low);
            let preempts = should_preempt(target.best(), before, low != 0);
            if moved && (idle || preempts) {
                target.interrupted.store(1, Ordering::Relaxed);
                drop(locks);
                return Some(low);
            }
        }
        None
    }
}

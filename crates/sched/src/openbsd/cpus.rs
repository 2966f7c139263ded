//! The scheduler's data for each CPU (`struct schedstate_percpu`).

use super::priority::{QUEUES, queue};
use super::{OpenBsd, Task};
use crate::queue::{Link, Queue};
use machine::{Atomic, Contexts, Ordering};

/// A CPU's scheduler data, guarded by `SCHED_LOCK`; a field says if it is also accessed without.
pub(super) struct Cpu<M: Contexts> {
    /// `spc_whichqs`: the queues with tasks. Its CPU reads without the lock if there are any.
    which: M::AtomicU32,
    /// `spc_nrun`: how many tasks are queued. Its CPU's clock reads it without the lock.
    queued: M::AtomicU32,
    /// `spc_curpriority`: the priority of the current task in user mode. Written by its CPU without
    /// the lock.
    pub(super) priority: M::AtomicU32,
    /// `spc_ldavg`: the load average. Read and written every five seconds without the lock.
    pub(super) load: M::AtomicU64,
    /// `need_resched`: the current task is to be preempted at its next safe point.
    pub(super) wanted: M::AtomicU32,
    /// 1 while the CPU holds the lock for a switch. Only its CPU touches it.
    pub(super) held: M::AtomicU32,
    /// `ci_curproc`; none if the CPU is idle.
    pub(super) current: Link<M, OpenBsd<M>>,
    /// `spc_qs`.
    queues: [Queue<M, OpenBsd<M>>; QUEUES],
    /// The CPU's clock. Only its CPU touches it.
    pub(super) clock: Clock<M>,
}

/// When a CPU's clocks tick.
pub(super) struct Clock<M: Contexts> {
    /// The next `hardclock`.
    pub(super) next: M::AtomicU64,
    /// `spc_schedticks`.
    pub(super) ticks: M::AtomicU32,
    /// `spc_rrticks`: ticks until `roundrobin`.
    pub(super) round: M::AtomicU32,
}

impl<M: Contexts> Cpu<M> {
    pub(super) fn new() -> Self {
        Cpu {
            which: M::AtomicU32::new(0),
            queued: M::AtomicU32::new(0),
            priority: M::AtomicU32::new(0),
            load: M::AtomicU64::new(0),
            wanted: M::AtomicU32::new(0),
            held: M::AtomicU32::new(0),
            current: Link::new(),
            queues: core::array::from_fn(|_| Queue::new()),
            clock: Clock {
                next: M::AtomicU64::new(0),
                ticks: M::AtomicU32::new(0),
                round: M::AtomicU32::new(super::clock::ROUND),
            },
        }
    }

    /// The number of queued tasks.
    pub(super) fn queued(&self) -> u32 {
        self.queued.load(Ordering::Relaxed)
    }

    /// The best queue that has a task.
    pub(super) fn best(&self) -> Option<usize> {
        let which = self.which.load(Ordering::Relaxed);
        (which != 0).then(|| which.trailing_zeros() as usize)
    }

    /// The tasks of a queue.
    pub(super) fn tasks(&self, queue: usize) -> impl Iterator<Item = Task<M>> {
        self.queues[queue].iter()
    }

    /// Adds a task at the end of its queue (`setrunqueue`).
    pub(super) fn add(&self, task: Task<M>) {
        let queue = queue(task.entry().queued_at());
        self.queues[queue].push_last(task);
        let which = self.which.load(Ordering::Relaxed);
        self.which.store(which | 1 << queue, Ordering::Relaxed);
        self.queued.store(self.queued() + 1, Ordering::Relaxed);
    }

    /// Removes a task (`remrunqueue`). Returns true if the CPU now has no queued task.
    pub(super) fn remove(&self, task: Task<M>) -> bool {
        let queue = queue(task.entry().queued_at());
        self.queues[queue].remove(task);
        self.queued.store(self.queued() - 1, Ordering::Relaxed);
        if !self.queues[queue].is_empty() {
            return false;
        }
        let which = self.which.load(Ordering::Relaxed) & !(1 << queue);
        self.which.store(which, Ordering::Relaxed);
        which == 0
    }
}

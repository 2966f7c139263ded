//! The scheduler's data for each CPU (`struct rq`, `struct cfs_rq`).

use super::fair::{MIGRATION_COST, Tunables};
use super::tree::Tree;
use super::{Cfs, Task};
use crate::handed::{Handed, Locked};
use crate::queue::{Link, Queue};
use machine::{Atomic, Contexts, Ordering};
use sync::lock_class;
use sync::spin::Ticket;

lock_class!(
    /// The lock of a CPU's run queue. Of two, the lock of the CPU with the lower number comes
    /// first. A leaf.
    pub RqLock = "rq->lock", rank 90
);

/// A held [`Rq::lock`].
pub(super) type RqGuard<'a, M> = Locked<'a, M, Ticket<M>, RqLock>;

/// A run queue. Its lock guards all fields that do not say otherwise.
pub(super) struct Rq<M: Contexts> {
    /// `rq->lock`.
    pub(super) lock: Handed<M, Ticket<M>, RqLock>,
    /// `nr_running`: the number of ready tasks, and the current one. Other CPUs read it without the
    /// lock.
    running: M::AtomicU32,
    /// `min_vruntime`. Other CPUs read it without the lock.
    minimum: M::AtomicU64,
    /// `curr`; none in the idle task. Other CPUs read it without the lock.
    pub(super) current: Link<M, Cfs<M>>,
    /// `TIF_NEED_RESCHED` of the current task.
    pub(super) wanted: M::AtomicU32,
    /// `next`: the ready task for which the current one makes way.
    pub(super) buddy: Link<M, Cfs<M>>,
    /// `tasks_timeline`.
    tree: Tree<M>,
    /// `cfs_rq->tasks`: the tasks in the tree and the current one, the latest first.
    tasks: Queue<M, Cfs<M>>,
    /// `avg_idle`.
    pub(super) average_idle: M::AtomicU64,
    /// `idle_stamp`: when the CPU ran out of tasks; 0 if it has some.
    pub(super) idle_since: M::AtomicU64,
    /// `nohz_balance_kick`: 1 if another CPU asks this one, which is idle, to look for tasks. The
    /// other CPU sets it without the lock.
    pub(super) kicked: M::AtomicU32,
    /// The next tick. Only its CPU touches this and the fields below.
    pub(super) next_tick: M::AtomicU64,
    /// `next_balance`.
    pub(super) next_balance: M::AtomicU64,
    /// `balance_interval`, in ticks.
    pub(super) interval: M::AtomicU32,
    /// `nr_balance_failed`: how often in a row all tasks that could migrate were cache-hot.
    pub(super) failed: M::AtomicU32,
    /// 1 while the CPU holds its lock for a switch.
    pub(super) held: M::AtomicU32,
}

impl<M: Contexts> Rq<M> {
    pub(super) fn new() -> Self {
        let word = || M::AtomicU32::new(0);
        let time = || M::AtomicU64::new(0);
        Rq {
            lock: Handed::new(),
            running: word(),
            minimum: time(),
            current: Link::new(),
            wanted: word(),
            buddy: Link::new(),
            tree: Tree::new(),
            tasks: Queue::new(),
            average_idle: M::AtomicU64::new(2 * MIGRATION_COST),
            idle_since: time(),
            kicked: word(),
            next_tick: time(),
            next_balance: time(),
            interval: M::AtomicU32::new(1),
            failed: word(),
            held: word(),
        }
    }

    pub(super) fn running(&self) -> u64 {
        u64::from(self.running.load(Ordering::Relaxed))
    }

    pub(super) fn minimum(&self) -> i64 {
        self.minimum.load(Ordering::Relaxed) as i64
    }

    /// Returns true if the CPU runs no task (`idle_cpu`).
    pub(super) fn is_idle(&self) -> bool {
        self.current.get().is_none()
    }

    /// The ready task with the least virtual time.
    pub(super) fn first(&self) -> Option<Task<M>> {
        self.tree.first()
    }

    /// The ready tasks, the latest first.
    pub(super) fn ready_tasks(&self) -> impl Iterator<Item = Task<M>> {
        let current = self.current.get();
        self.tasks.iter().filter(move |&task| Some(task) != current)
    }

    /// Counts the current task's time (`update_curr`).
    pub(super) fn update(&self, now: u64) {
        if let Some(current) = self.current.get() {
            current.entry().count(now);
        }
        self.raise_minimum();
    }

    /// Raises the minimum to the least virtual time here (`update_min_vruntime`).
    fn raise_minimum(&self) {
        let current = self.current.get().map(|task| task.entry().vruntime());
        let first = self.first().map(|task| task.entry().vruntime());
        let least = match (current, first) {
            (Some(current), Some(first)) => current.min(first),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return,
        };
        let minimum = self.minimum().max(least);
        self.minimum.store(minimum as u64, Ordering::Relaxed);
    }

    /// Adds a ready task (`enqueue_entity`).
    pub(super) fn add(&self, task: Task<M>) {
        self.tasks.push_first(task);
        self.tree.add(task);
        self.set_running(self.running() + 1);
    }

    /// Removes a ready task that migrates to another CPU.
    pub(super) fn remove(&self, task: Task<M>) {
        self.take(task);
        self.leave(task);
    }

    /// Takes a ready task out of the tree.
    fn take(&self, task: Task<M>) {
        self.tree.remove(task);
        if self.buddy.get() == Some(task) {
            self.buddy.set(None);
        }
    }

    /// Removes a task that is not in the tree, such as the current one when it sleeps or ends
    /// (`dequeue_entity`).
    pub(super) fn leave(&self, task: Task<M>) {
        self.tasks.remove(task);
        self.set_running(self.running() - 1);
        self.raise_minimum();
    }

    fn set_running(&self, running: u64) {
        self.running.store(running as u32, Ordering::Relaxed);
    }

    /// Puts the current task back among the ready ones (`put_prev_entity`).
    pub(super) fn put_back(&self, task: Task<M>) {
        self.tree.add(task);
    }

    /// The ready task that comes next (`pick_next_entity`): the buddy, unless the first is too far
    /// ahead.
    pub(super) fn next(&self, tunables: Tunables) -> Option<Task<M>> {
        let (first, buddy) = (self.first()?, self.buddy.get());
        let fair = |buddy: &Task<M>| {
            !tunables.preempts(buddy.entry().vruntime(), first.entry().vruntime())
        };
        Some(buddy.filter(fair).unwrap_or(first))
    }

    /// Makes the next task the current one (`pick_next_task_fair`); `None` if there is none.
    pub(super) fn choose(&self, tunables: Tunables, now: u64) -> Option<Task<M>> {
        let next = self.next(tunables);
        if let Some(task) = next {
            self.take(task);
            task.entry().start(now);
        }
        self.wanted.store(0, Ordering::Relaxed);
        self.current.set(next);
        next
    }
}

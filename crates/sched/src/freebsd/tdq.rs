//! The scheduler's data for each CPU (`struct tdq`).

use super::interact::IDLE;
use super::runq::RunQueues;
use super::{Task, Ule};
use crate::handed::{Handed, Locked};
use crate::queue::Link;
use machine::{Atomic, Contexts, Ordering};
use sync::lock_class;
use sync::spin::Ticket;

lock_class!(
    /// The lock of a CPU's queues. Of two, the lock of the CPU with the lower number comes first. A
    /// leaf.
    pub TdqLock = "sched lock", rank 90
);

/// A held [`Tdq::lock`].
pub(super) type TdqGuard<'a, M> = Locked<'a, M, Ticket<M>, TdqLock>;

/// A CPU's scheduler data. Written under its lock, unless a field says otherwise.
pub(super) struct Tdq<M: Contexts> {
    /// `tdq_lock`. FreeBSD's spin mutex is a test-and-set lock, by which a task that yields in a
    /// loop could keep others from its CPU's queue forever.
    pub(super) lock: Handed<M, Ticket<M>, TdqLock>,
    /// `tdq_load`: the number of tasks running or queued. Other CPUs read it without the lock.
    load: M::AtomicU32,
    /// `tdq_transferable`: the number of tasks queued. Other CPUs read it without the lock.
    transferable: M::AtomicU32,
    /// `tdq_lowpri`: the best priority among the running and queued tasks, 255 if there are none.
    /// Other CPUs read it without the lock.
    best: M::AtomicU32,
    /// `tdq_cpu_idle`: 1 if the idle thread waits for an interrupt. Written by its CPU without the
    /// lock.
    pub(super) idle: M::AtomicU32,
    /// `tdq_ipipending`: 1 if an interrupt is on its way, after which the CPU looks at `best`. Set
    /// under the lock; an idle CPU resets it without the lock.
    pub(super) interrupted: M::AtomicU32,
    /// `TDF_NEEDRESCHED` of the current task: it is preempted when it returns to user mode.
    pub(super) wanted: M::AtomicU32,
    /// 1 if an interrupt preempts the current task, 0 if a wake-up of its own does.
    pub(super) by_interrupt: M::AtomicU32,
    /// `TDF_SLICEEND` of the current task: it is preempted because its slice is over.
    pub(super) slice_over: M::AtomicU32,
    /// `tdq_curthread`; none if the CPU is idle.
    pub(super) current: Link<M, Ule<M>>,
    queues: RunQueues<M>,
    /// The next tick of the statistics clock. Only its CPU touches this and the fields below.
    pub(super) next_tick: M::AtomicU64,
    /// `randomval`.
    random: M::AtomicU32,
    /// 1 while the CPU holds its lock for a switch.
    pub(super) held: M::AtomicU32,
}

impl<M: Contexts> Tdq<M> {
    pub(super) fn new(cpu: usize) -> Self {
        let word = || M::AtomicU32::new(0);
        Tdq {
            lock: Handed::new(),
            load: word(),
            transferable: word(),
            best: M::AtomicU32::new(IDLE),
            idle: word(),
            interrupted: word(),
            wanted: word(),
            by_interrupt: word(),
            slice_over: word(),
            current: Link::new(),
            queues: RunQueues::new(),
            next_tick: M::AtomicU64::new(0),
            random: M::AtomicU32::new(cpu as u32 * 69_069 + 5),
            held: word(),
        }
    }

    pub(super) fn load(&self) -> u32 {
        self.load.load(Ordering::Relaxed)
    }

    pub(super) fn transferable(&self) -> u32 {
        self.transferable.load(Ordering::Relaxed)
    }

    /// The best priority among the running and queued tasks (`tdq_lowpri`).
    pub(super) fn best(&self) -> u32 {
        self.best.load(Ordering::Relaxed)
    }

    /// The priority of the running task.
    pub(super) fn running(&self) -> u32 {
        self.current
            .get()
            .map_or(IDLE, |task| task.entry().priority())
    }

    /// A random number (`sched_random`).
    pub(super) fn random(&self) -> u32 {
        let random = self.random.load(Ordering::Relaxed);
        let random = random.wrapping_mul(69_069).wrapping_add(5);
        self.random.store(random, Ordering::Relaxed);
        random >> 16
    }

    /// Counts a task and queues it (`tdq_add`).
    pub(super) fn add(&self, task: Task<M>) {
        self.load.store(self.load() + 1, Ordering::Relaxed);
        self.enqueue(task);
    }

    /// Queues a task that is counted already (`tdq_runq_add`).
    pub(super) fn enqueue(&self, task: Task<M>) {
        let entry = task.entry();
        let place = self.queues.place(entry.priority(), entry.is_preempted());
        entry.set_place(place);
        self.queues.add(task, place, entry.is_preempted());
        entry.set_preempted(false);
        let transferable = self.transferable() + 1;
        self.transferable.store(transferable, Ordering::Relaxed);
        if entry.priority() < self.best() {
            self.best.store(entry.priority(), Ordering::Relaxed);
        }
    }

    /// Takes a task that is to run here out of its queue.
    pub(super) fn dequeue(&self, task: Task<M>) {
        self.queues.remove(task, task.entry().place());
        let transferable = self.transferable() - 1;
        self.transferable.store(transferable, Ordering::Relaxed);
    }

    /// Counts one task less: it sleeps, ends, or migrates to another CPU (`tdq_load_rem`).
    pub(super) fn leave(&self) {
        self.load.store(self.load() - 1, Ordering::Relaxed);
    }

    /// The next task of the queue.
    pub(super) fn first(&self) -> Option<Task<M>> {
        self.queues.first()
    }

    /// Returns true if the current task, put back, would be chosen again.
    pub(super) fn would_go_on(&self, task: Task<M>) -> bool {
        let entry = task.entry();
        let preempted = entry.is_preempted();
        let place = self.queues.place(entry.priority(), preempted);
        self.queues.would_be_first(place, preempted)
    }

    /// The task that another CPU may steal.
    pub(super) fn to_steal(&self) -> Option<Task<M>> {
        self.queues.to_steal()
    }

    /// Makes `current`, one of the tasks here, the running one (`sched_choose`).
    pub(super) fn run(&self, current: Option<Task<M>>) {
        self.current.set(current);
        self.best.store(self.running(), Ordering::Relaxed);
    }

    /// Recomputes the best priority, after a task's got worse (`tdq_setlowpri`).
    pub(super) fn set_best(&self) {
        let first = self.first().map_or(IDLE, |task| task.entry().priority());
        self.best
            .store(first.min(self.running()), Ordering::Relaxed);
    }

    /// Advances the queues at a tick.
    pub(super) fn tick(&self) {
        self.queues.tick();
    }
}

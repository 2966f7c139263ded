//! The smallest policy: one queue and one lock, which is held across each switch.

use machine::{Atomic, Contexts, CpuRange, Ordering, SharedCell};
use sched::{Leaving, Policy, TaskRef, Tick, Why};
use sync::RawLock;
use sync::spin::Ticket;

/// A policy with one FIFO queue.
pub struct Fifo<M: Contexts> {
    lock: Ticket<M>,
    /// The tasks that wait; under the lock.
    queue: M::Cell<Vec<TaskRef<M, Fifo<M>>>>,
    /// 1 for each CPU that waits for an interrupt.
    idle: Vec<M::AtomicU32>,
    /// One more than the highest index of a task.
    pub places: std::sync::Arc<M::AtomicUsize>,
}

const SLICE: u64 = 100_000;

impl<M: Contexts> Fifo<M> {
    /// The caller holds the lock.
    fn push(&self, task: TaskRef<M, Self>) -> Option<usize> {
        // SAFETY: the caller holds the lock that protects the queue.
        unsafe { (*self.queue.write()).push(task) };
        let idle = |cpu: &M::AtomicU32| cpu.swap(0, Ordering::Relaxed) != 0;
        self.idle.iter().position(idle)
    }
}

// SAFETY: the queue is touched under the lock only, and whatever is pushed is removed once.
unsafe impl<M: Contexts> Policy<M> for Fifo<M> {
    const NAME: &'static str = "fifo";
    type Entry = ();

    fn new(cpus: CpuRange) -> Self {
        Fifo {
            lock: Ticket::new(),
            queue: M::Cell::new(Vec::new()),
            idle: (0..cpus.len()).map(|_| M::AtomicU32::new(0)).collect(),
            places: std::sync::Arc::new(M::AtomicUsize::new(0)),
        }
    }

    fn entry() {}

    fn begin(&self, task: TaskRef<M, Self>, _: Option<TaskRef<M, Self>>, _: u64) {
        let places = self.places.load(Ordering::Relaxed).max(task.index() + 1);
        self.places.store(places, Ordering::Relaxed);
    }

    fn lock(&self, _: usize) {
        self.lock.lock();
    }

    fn unlock(&self, cpu: usize) {
        let _ = cpu;
        // SAFETY: the scheduler calls this after `lock`, on the same CPU.
        unsafe { self.lock.unlock(()) };
    }

    fn next(
        &self,
        _: usize,
        _: Option<(TaskRef<M, Self>, Leaving)>,
        _: u64,
    ) -> Option<TaskRef<M, Self>> {
        assert!(self.lock.is_locked());
        // SAFETY: the lock that protects the queue is held.
        let queue = unsafe { &mut *self.queue.write() };
        (!queue.is_empty()).then(|| queue.remove(0))
    }

    fn put_back(&self, _: usize, task: TaskRef<M, Self>, _: Leaving, _: u64) -> Option<usize> {
        assert!(self.lock.is_locked());
        self.push(task)
    }

    fn ready(&self, task: TaskRef<M, Self>, _: usize, _: Why, _: u64) -> Option<usize> {
        self.lock.lock();
        let kick = self.push(task);
        // SAFETY: locked above.
        unsafe { self.lock.unlock(()) };
        kick
    }

    fn idle(&self, cpu: usize) -> bool {
        self.lock.lock();
        // SAFETY: the lock that protects the queue is held.
        let empty = unsafe { (*self.queue.read()).is_empty() };
        if empty {
            self.idle[cpu].store(1, Ordering::Relaxed);
        }
        // SAFETY: locked above.
        unsafe { self.lock.unlock(()) };
        empty
    }

    fn tick(&self, _: usize, _: TaskRef<M, Self>, _: u64) -> Tick {
        Tick {
            preempt: true,
            kick: None,
        }
    }

    fn deadline(&self, _: usize, _: TaskRef<M, Self>, now: u64) -> u64 {
        now + SLICE
    }
}

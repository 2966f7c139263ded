//! The policy's words in a task (`struct sched_entity`).

use super::Cfs;
use super::tree::Node;
use crate::queue::{Linked, Links};
use machine::{Atomic, Contexts, Ordering};

/// Guarded by the lock of the run queue that the task is in. A sleeping task's words belong to its
/// waker, a new one's to its maker.
pub struct Entry<M: Contexts> {
    /// `group_node`: its links among all tasks of the run queue, the current one included.
    links: Links<M, Cfs<M>>,
    /// `run_node`: its node among the ready tasks of the run queue, without the current one.
    pub(super) node: Node<M>,
    /// `vruntime`.
    vruntime: M::AtomicU64,
    /// `exec_start`: the time up to which its run time has been counted.
    counted: M::AtomicU64,
    /// `sum_exec_runtime` - `prev_sum_exec_runtime`: how long it has run since it was chosen.
    ran: M::AtomicU64,
    /// `task_cpu`: the CPU where it runs or is ready, or ran last.
    cpu: M::AtomicU32,
}

impl<M: Contexts> Entry<M> {
    pub(super) fn new() -> Self {
        Entry {
            links: Links::new(),
            node: Node::new(),
            vruntime: M::AtomicU64::new(0),
            counted: M::AtomicU64::new(0),
            ran: M::AtomicU64::new(0),
            cpu: M::AtomicU32::new(0),
        }
    }

    pub(super) fn vruntime(&self) -> i64 {
        self.vruntime.load(Ordering::Relaxed) as i64
    }

    pub(super) fn set_vruntime(&self, vruntime: i64) {
        self.vruntime.store(vruntime as u64, Ordering::Relaxed);
    }

    pub(super) fn ran(&self) -> u64 {
        self.ran.load(Ordering::Relaxed)
    }

    /// The time up to which its run time has been counted: when it ran last.
    pub(super) fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Begins its share of the CPU: the task is chosen (`set_next_entity`).
    pub(super) fn start(&self, now: u64) {
        self.counted.store(now, Ordering::Relaxed);
        self.ran.store(0, Ordering::Relaxed);
    }

    /// Counts its run time until `now` (`update_curr`).
    pub(super) fn count(&self, now: u64) {
        let ran = now.saturating_sub(self.counted());
        self.counted
            .store(self.counted().max(now), Ordering::Relaxed);
        self.ran.store(self.ran() + ran, Ordering::Relaxed);
        self.set_vruntime(self.vruntime() + ran as i64);
    }

    pub(super) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_cpu(&self, cpu: usize) {
        self.cpu.store(cpu as u32, Ordering::Relaxed);
    }
}

impl<M: Contexts> Linked<M, Cfs<M>> for Entry<M> {
    fn links(&self) -> &Links<M, Cfs<M>> {
        &self.links
    }
}

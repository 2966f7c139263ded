//! The policy's words in a task.

use super::OpenBsd;
use super::priority::{inherited, user};
use crate::TaskRef;
use crate::queue::{Link, Linked, Links};
use machine::{Atomic, Contexts, Ordering};

/// The value of `asleep_since` while the task is awake.
const AWAKE: u32 = u32::MAX;

/// The scheduler's words of `struct proc`, guarded by `SCHED_LOCK`. A new task's belong to its
/// maker.
pub struct Entry<M: Contexts> {
    /// Its links in a run queue.
    links: Links<M, OpenBsd<M>>,
    /// `p_cpu`: the CPU where it runs or is queued, or ran last.
    cpu: M::AtomicU32,
    /// `p_estcpu`: an estimate of its recent use of the CPU, from which `p_usrpri` follows.
    estcpu: M::AtomicU32,
    /// `p_runpri`: the priority by which it is queued.
    queued_at: M::AtomicU32,
    /// The number of passes of `schedcpu` when it went to sleep, for `p_slptime`; or [`AWAKE`].
    asleep_since: M::AtomicU32,
    /// The pass of `schedcpu` that last decayed its estimate.
    pub(super) decayed: M::AtomicU32,
    /// 1 until it has run.
    pub(super) fresh: M::AtomicU32,
    /// The task that made it. It may have ended: see `parents_generation`.
    parent: Link<M, OpenBsd<M>>,
    parents_generation: M::AtomicU64,
}

impl<M: Contexts> Entry<M> {
    pub(super) fn new() -> Self {
        let word = || M::AtomicU32::new(0);
        Entry {
            links: Links::new(),
            cpu: word(),
            estcpu: word(),
            queued_at: word(),
            asleep_since: word(),
            decayed: word(),
            fresh: word(),
            parent: Link::new(),
            parents_generation: M::AtomicU64::new(0),
        }
    }

    /// Initialises the words of a new task, which begins with its parent's estimate
    /// (`scheduler_fork_hook`).
    pub(super) fn begin(&self, parent: Option<TaskRef<M, OpenBsd<M>>>, cpu: usize) {
        self.set_cpu(cpu);
        self.set_estcpu(parent.map_or(0, |parent| parent.entry().estcpu()));
        self.parent.set(parent);
        if let Some(parent) = parent {
            let generation = parent.state.generation();
            self.parents_generation.store(generation, Ordering::Relaxed);
        }
        self.wake();
        self.decayed.store(0, Ordering::Relaxed);
        self.fresh.store(1, Ordering::Relaxed);
    }

    /// Adds the estimate of the task, which has ended, to its parent's, if that still lives
    /// (`scheduler_wait_hook`).
    pub(super) fn end(&self) {
        let generation = self.parents_generation.load(Ordering::Relaxed);
        let alive = |parent: &TaskRef<M, OpenBsd<M>>| parent.state.generation() == generation;
        if let Some(parent) = self.parent.get().filter(alive) {
            let parent = parent.entry();
            parent.set_estcpu(inherited(parent.estcpu(), self.estcpu()));
        }
    }

    pub(super) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_cpu(&self, cpu: usize) {
        self.cpu.store(cpu as u32, Ordering::Relaxed);
    }

    pub(super) fn estcpu(&self) -> u32 {
        self.estcpu.load(Ordering::Relaxed)
    }

    pub(super) fn set_estcpu(&self, estcpu: u32) {
        self.estcpu.store(estcpu, Ordering::Relaxed);
    }

    /// `p_usrpri`.
    pub(super) fn user_priority(&self) -> u32 {
        user(self.estcpu())
    }

    pub(super) fn queued_at(&self) -> u32 {
        self.queued_at.load(Ordering::Relaxed)
    }

    pub(super) fn set_queued_at(&self, priority: u32) {
        self.queued_at.store(priority, Ordering::Relaxed);
    }

    /// Records that it goes to sleep after this many passes of `schedcpu`.
    pub(super) fn sleep(&self, passes: u32) {
        self.asleep_since.store(passes, Ordering::Relaxed);
    }

    pub(super) fn wake(&self) {
        self.asleep_since.store(AWAKE, Ordering::Relaxed);
    }

    /// `p_slptime`: how often `schedcpu` has found it asleep.
    pub(super) fn seconds_asleep(&self, passes: u32) -> u32 {
        passes.saturating_sub(self.asleep_since.load(Ordering::Relaxed))
    }
}

impl<M: Contexts> Linked<M, OpenBsd<M>> for Entry<M> {
    fn links(&self) -> &Links<M, OpenBsd<M>> {
        &self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use alloc::boxed::Box;
    use core::ptr::NonNull;
    use sim::Sim;

    fn task() -> TaskRef<Sim, OpenBsd<Sim>> {
        let place = Box::leak(Box::new(Task::new(0)));
        // SAFETY: it stays forever.
        unsafe { TaskRef::new(NonNull::from(place)) }
    }

    /// A child whose estimate has grown to this value.
    fn child_of(parent: TaskRef<Sim, OpenBsd<Sim>>, estcpu: u32) -> TaskRef<Sim, OpenBsd<Sim>> {
        let child = task();
        child.entry().begin(Some(parent), 0);
        child.entry().set_estcpu(child.entry().estcpu() + estcpu);
        child
    }

    #[test]
    fn a_parent_pays_for_its_children() {
        let parent = task();
        parent.entry().begin(None, 0);
        // The second child begins with the parent's estimate, which so counts twice.
        let estimates = [3, 1, 30].map(|computed| {
            child_of(parent, computed).entry().end();
            parent.entry().estcpu()
        });
        assert_eq!(estimates, [3, 7, 36]);
    }

    #[test]
    fn a_task_in_the_place_of_an_ended_parent_does_not_pay() {
        let parent = task();
        parent.entry().begin(None, 0);
        let child = child_of(parent, 5);
        parent.state.end();
        parent.entry().begin(None, 0);
        child.entry().end();
        assert_eq!(parent.entry().estcpu(), 0);
    }
}

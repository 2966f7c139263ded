//! The policy's words in a task.

use super::OpenBsd;
use super::priority::user;
use crate::queue::{Linked, Links};
use machine::{Atomic, Contexts, Ordering};

/// In `asleep_since`: the task is awake.
const AWAKE: u32 = u32::MAX;

/// The scheduler's words of `struct proc`. Under `SCHED_LOCK`; a new task's are its maker's.
pub struct Entry<M: Contexts> {
    /// In a run queue.
    links: Links<M, OpenBsd<M>>,
    /// `p_cpu`: where it runs or is queued, or ran last.
    cpu: M::AtomicU32,
    /// `p_estcpu`: how much it has run lately. `p_usrpri` follows from it.
    estcpu: M::AtomicU32,
    /// `p_runpri`: the priority by which it is queued.
    queued_at: M::AtomicU32,
    /// The passes of `schedcpu` when it went to sleep, for `p_slptime`; or [`AWAKE`].
    asleep_since: M::AtomicU32,
    /// The pass of `schedcpu` that last decayed it.
    pub(super) decayed: M::AtomicU32,
    /// 1 until it has run.
    pub(super) fresh: M::AtomicU32,
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
        }
    }

    /// A new task's, whose parent has this estimate (`scheduler_fork_hook`).
    pub(super) fn begin(&self, estcpu: u32, cpu: usize) {
        self.set_cpu(cpu);
        self.set_estcpu(estcpu);
        self.wake();
        self.decayed.store(0, Ordering::Relaxed);
        self.fresh.store(1, Ordering::Relaxed);
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

    /// It goes to sleep, after so many passes of `schedcpu`.
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

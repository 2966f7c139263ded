//! Random preemption: a task loses its CPU before an access, wherever it holds no pin.
//!
//! # Protocol
//! The CPU's dice choose the access. The pending interrupts are delivered, and the task goes behind
//! those that wait for this CPU; the access follows when it is back, perhaps on another CPU. The
//! looks of a spin are accesses too: a task that spins, unpinned, lets the one that it waits for
//! run in the end.
//!
//! Below a pin nothing happens, so neither in the scheduler, which pins itself, nor within one
//! access to translated memory. Nor in a CPU's own context: it runs no task.

use super::{Engine, Running};

/// Random preemption on a machine with a scheduler, whose kernel code then loses its CPU anywhere
/// outside of pins: to find races, not to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// One of so many accesses is preceded by it.
    pub one_in: u32,
}

impl Running {
    /// The calling task may be preempted here.
    pub(crate) fn maybe_preempt(self) {
        if self.with(Engine::draws_preemption) {
            self.preempt();
        }
    }

    /// The calling task goes behind those that wait for its CPU.
    #[cold]
    pub(super) fn preempt(self) {
        self.deliver();
        if let Some(scheduler) = self.scheduler() {
            scheduler.yield_now();
        }
    }
}

impl Engine {
    /// Returns true if the running task is to be preempted before the access that it is about to
    /// make.
    #[inline]
    pub(super) fn draws_preemption(&mut self) -> bool {
        match self.watch.preempt() {
            None => false,
            Some(preempt) => self.draws(preempt),
        }
    }

    #[cold]
    fn draws(&mut self, Preempt { one_in }: Preempt) -> bool {
        let is_task = self.scheduler.is_some() && self.current >= self.cpus.len();
        if !is_task || self.context().pins > 0 {
            return false;
        }
        let drawn = self.cpu().below(u64::from(one_in)) == 0;
        self.counts.preemptions += u64::from(drawn);
        drawn
    }
}

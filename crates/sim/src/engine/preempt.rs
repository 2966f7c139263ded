//! Random preemption: a task that holds no pin loses its CPU before an access.
//!
//! # Protocol
//! The CPU's random numbers (`dice`) choose the access. The pending interrupts are delivered, and
//! the task yields to those that wait for this CPU; it makes the access when it runs again, perhaps
//! on another CPU. The reads of a spin are accesses too, so a task that spins without a pin in the
//! end lets the task run that it waits for.
//!
//! No task is preempted while it holds a pin; so none is in the scheduler, which pins itself, or
//! within one access to translated memory. A CPU's own context is not preempted either: it runs no
//! task.

use super::{Engine, Running};

/// Random preemption on a machine with a scheduler, whose kernel code then loses its CPU anywhere
/// outside of pins: to find races, not to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preempt {
    /// One in this many accesses is preceded by a preemption.
    pub one_in: u32,
}

impl Running {
    /// Preempts the calling task, if the random numbers say so.
    pub(crate) fn maybe_preempt(self) {
        if self.with(Engine::draws_preemption) {
            self.preempt();
        }
    }

    /// Makes the calling task yield to those that wait for its CPU.
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

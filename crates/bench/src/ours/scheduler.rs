//! The schedulers of presets: each system's own.

use baselines::{Preset, Scheduling};
use hosted::Hosted;
use machine::{Contexts, CpuRange, Scheduler};
use sched::freebsd::Ule;
use sched::linux::Cfs;
use sched::openbsd::OpenBsd;
use sched::{Best, Policy, Sched};
use sim::Sim;
use std::io;

/// A machine that takes a scheduler.
pub trait Schedules: Contexts {
    /// Gives the machine the scheduler that `make` makes of its CPUs.
    fn schedule_by<S: Scheduler + 'static>(&self, make: fn(CpuRange) -> S) -> io::Result<()>;
}

impl Schedules for Hosted {
    fn schedule_by<S: Scheduler + 'static>(&self, make: fn(CpuRange) -> S) -> io::Result<()> {
        self.schedule(make)
    }
}

impl Schedules for Sim {
    fn schedule_by<S: Scheduler + 'static>(&self, make: fn(CpuRange) -> S) -> io::Result<()> {
        self.schedule(make);
        Ok(())
    }
}

/// A scheduler for machines of a kind.
pub struct Chosen<M> {
    pub name: &'static str,
    /// Gives it to the machine.
    pub install: fn(&M) -> io::Result<()>,
}

/// The scheduler of the preset's system.
pub fn of<M: Schedules>(preset: Preset) -> Chosen<M> {
    match preset.scheduler {
        Scheduling::Own => chosen::<M, Best<M>>(),
        Scheduling::Ule => chosen::<M, Ule<M>>(),
        Scheduling::Cfs => chosen::<M, Cfs<M>>(),
        Scheduling::OpenBsd => chosen::<M, OpenBsd<M>>(),
    }
}

fn chosen<M: Schedules, P: Policy<M>>() -> Chosen<M> {
    Chosen {
        name: P::NAME,
        install: |machine| machine.schedule_by(Sched::<M, P>::new),
    }
}

//! loom threads as CPUs.

use crate::Checked;
use machine::{CpuId, Cpus, Execute, Job, Pinned};
use std::cell::Cell;

loom::thread_local! {
    static CURRENT: Cell<CpuId> = Cell::new(CpuId::NONE);
}

/// The calling thread's pin.
pub struct Pin(CpuId);

impl Pinned for Pin {
    fn cpu(&self) -> CpuId {
        self.0
    }
}

// SAFETY: `execute` gives each CPU to one thread.
unsafe impl Cpus for Checked {
    type Pin = Pin;

    fn pin() -> Pin {
        Pin(CURRENT.with(Cell::get))
    }

    fn relax(_round: u32) {
        loom::thread::yield_now();
    }

    fn delay(_pauses: u32) {
        // Time says nothing about order: a delay may be arbitrarily short.
    }
}

impl Execute for Checked {
    /// The calling loom thread runs the first job, threads of their own the rest.
    fn execute(&self, jobs: Vec<Job>) {
        let cpus = machine::Topology::cpus(self);
        let mut jobs = jobs.into_iter().enumerate();
        let first = jobs.next();
        let threads: Vec<_> = jobs
            .map(|(cpu, job)| {
                let cpu = cpus.cpu(cpu);
                loom::thread::spawn(move || {
                    CURRENT.with(|current| current.set(cpu));
                    job();
                    crate::task::end();
                })
            })
            .collect();
        if let Some((cpu, job)) = first {
            CURRENT.with(|current| current.set(cpus.cpu(cpu)));
            job();
            crate::task::end();
            CURRENT.with(|current| current.set(CpuId::NONE));
        }
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

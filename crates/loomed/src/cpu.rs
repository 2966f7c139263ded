//! loom threads as CPUs.

use crate::Loomed;
use machine::{CpuId, Cpus, Execute, Job, Pinned};
use std::cell::Cell;
use std::marker::PhantomData;

loom::thread_local! {
    static CURRENT: Cell<CpuId> = Cell::new(CpuId::NONE);
    /// The thread's pins.
    static PINS: Cell<u32> = Cell::new(0);
}

/// The calling thread's pin. Pins are counted, so that a task that sleeps with one is found.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

impl Pinned for Pin {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        PINS.with(|pins| pins.set(pins.get() - 1));
    }
}

/// Panics if the task is about to sleep while it holds a pin.
#[track_caller]
pub(crate) fn assert_unpinned() {
    assert!(Loomed::pins() == 0, "a task sleeps while it is pinned");
}

// SAFETY: `execute` gives each CPU to one thread.
unsafe impl Cpus for Loomed {
    type Pin = Pin;

    fn pin() -> Pin {
        PINS.with(|pins| pins.set(pins.get() + 1));
        Pin {
            cpu: CURRENT.with(Cell::get),
            not_send: PhantomData,
        }
    }

    fn pins() -> u32 {
        PINS.with(Cell::get)
    }

    /// The CPU's node: CPUs alternate between two.
    fn numa_node() -> usize {
        CURRENT.with(|current| current.get().index() % 2)
    }

    fn relax(_round: u32) {
        loom::thread::yield_now();
    }

    fn delay(_pauses: u32) {
        // A delay orders nothing and may be arbitrarily short.
    }
}

impl Execute for Loomed {
    /// The calling loom thread runs the first job; each other job gets a thread.
    fn execute(&self, jobs: Vec<Job>) {
        let cpus = machine::Topology::cpus(self);
        let mut jobs = jobs.into_iter().enumerate();
        let first = jobs.next();
        let threads: Vec<_> = jobs
            .map(|(cpu, job)| {
                let cpu = cpus.cpu(cpu);
                let run = move || {
                    CURRENT.with(|current| current.set(cpu));
                    job();
                    crate::task::end();
                };
                let thread = loom::thread::Builder::new().stack_size(crate::STACK);
                thread.spawn(run).expect("a thread")
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

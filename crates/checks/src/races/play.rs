//! What a scenario is, and what it gives to a machine.

use machine::{Job, Topology};
use sim::Sim;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Something that must hold in every schedule.
#[derive(Clone)]
pub struct Scenario {
    /// The name on the command line: family, dot, what it is about.
    pub name: String,
    /// How many CPUs it may have.
    pub cpus: RangeInclusive<usize>,
    /// Bytes of physical memory.
    pub memory: usize,
    /// Makes the play, on CPU 0 of the machine.
    pub build: Arc<dyn Fn(&Sim) -> Play + Send + Sync>,
}

impl Scenario {
    /// A scenario without physical memory, on 2 to 4 CPUs.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(&Sim) -> Play + Send + Sync + 'static,
    ) -> Self {
        Scenario {
            name: name.into(),
            cpus: 2..=4,
            memory: 0,
            build: Arc::new(build),
        }
    }

    /// With another number of CPUs.
    pub fn on(mut self, cpus: RangeInclusive<usize>) -> Self {
        self.cpus = cpus;
        self
    }

    /// With physical memory.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

/// One run: what each CPU does, and what must hold when all have ended.
///
/// Whatever breaks panics. All of it lives in the machine; after a failure it is
/// forgotten, not dropped.
pub struct Play {
    /// Job *i* is CPU *i*'s.
    pub jobs: Vec<Job>,
    /// The last look, on CPU 0.
    pub end: Job,
}

impl Play {
    /// Each CPU does `job` with its number in `world`, and `end` takes the world apart.
    pub fn new<W: Send + Sync + 'static>(
        machine: &Sim,
        world: W,
        job: fn(&W, usize),
        end: impl FnOnce(W) + Send + 'static,
    ) -> Self {
        let world = Arc::new(world);
        let jobs = (0..machine.cpus().len()).map(|cpu| {
            let world = world.clone();
            Box::new(move || job(&world, cpu)) as Job
        });
        let jobs = jobs.collect();
        let end = move || end(Arc::into_inner(world).expect("all jobs have ended"));
        Play {
            jobs,
            end: Box::new(end),
        }
    }
}

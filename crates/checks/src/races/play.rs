//! A scenario, and the jobs that it gives to a machine.

use super::scenarios::process;
use machine::Job;
use sim::Sim;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Something that must hold in every schedule.
#[derive(Clone)]
pub struct Scenario {
    /// The name on the command line: family, dot, subject.
    pub name: String,
    /// How many jobs it may have: on a CPU each, perhaps of a machine with many more, or tasks on
    /// fewer CPUs, which are preempted wherever they hold no pin.
    pub jobs: RangeInclusive<usize>,
    /// Bytes of physical memory.
    pub memory: usize,
    /// Makes the play, on CPU 0 of the machine.
    pub build: Arc<dyn Fn(&Stage) -> Play + Send + Sync>,
}

impl Scenario {
    /// A scenario without physical memory, of 2 to 4 jobs.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(&Stage) -> Play + Send + Sync + 'static,
    ) -> Self {
        Scenario {
            name: name.into(),
            jobs: 2..=4,
            memory: 0,
            build: Arc::new(build),
        }
    }

    /// With another number of jobs.
    pub fn on(mut self, jobs: RangeInclusive<usize>) -> Self {
        self.jobs = jobs;
        self
    }

    /// With physical memory.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

/// Where a play is made.
pub struct Stage {
    /// The machine.
    pub machine: Sim,
    /// How many jobs it is to have.
    pub jobs: usize,
}

/// One run: the work of each job, and the conditions at the end of all.
///
/// Whatever breaks panics. All of it lives in the machine; after a failure it is
/// forgotten, not dropped.
pub struct Play {
    /// Each on a CPU of its own, unless the machine has a scheduler.
    pub jobs: Vec<Job>,
    /// The last look.
    pub end: Job,
}

impl Play {
    /// Each of the jobs is `job` with its number in `world`, and `end` takes the world apart.
    pub fn new<W: Send + Sync + 'static>(
        stage: &Stage,
        world: W,
        job: fn(&W, usize),
        end: impl FnOnce(W) + Send + 'static,
    ) -> Self {
        let world = Arc::new(world);
        let jobs = (0..stage.jobs).map(|number| {
            let world = world.clone();
            Box::new(move || {
                job(&world, number);
                // It runs on while it gives its part of the world up.
                process::leave::<Sim>();
            }) as Job
        });
        let jobs = jobs.collect();
        let end = move || end(Arc::into_inner(world).expect("all jobs have ended"));
        Play {
            jobs,
            end: Box::new(end),
        }
    }
}

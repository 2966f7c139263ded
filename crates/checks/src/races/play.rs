//! A scenario, and the jobs that it gives to a machine.

use super::scenarios::process;
use machine::Job;
use sim::Sim;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A condition that must hold in every schedule.
#[derive(Clone)]
pub struct Scenario {
    /// The name on the command line: family, dot, subject.
    pub name: String,
    /// The numbers of jobs that it may have: one on each CPU, perhaps of a machine with many more
    /// CPUs, or tasks on fewer CPUs, which are preempted where they hold no pin.
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

    /// The scenario with another number of jobs.
    pub fn on(mut self, jobs: RangeInclusive<usize>) -> Self {
        self.jobs = jobs;
        self
    }

    /// The scenario with physical memory.
    pub fn with_memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

/// The machine and the number of jobs for which a play is made.
pub struct Stage {
    pub machine: Sim,
    /// The number of jobs.
    pub jobs: usize,
}

/// One run: the work of each job, and the conditions at the end of all.
///
/// A broken condition panics. All of a play is in the machine's memory; after a failure it is
/// forgotten, not dropped.
pub struct Play {
    /// The jobs, each on a CPU of its own unless the machine has a scheduler.
    pub jobs: Vec<Job>,
    /// The check after all jobs have ended.
    pub end: Job,
}

impl Play {
    /// A play whose jobs are `job` with their numbers in `world`, and whose `end` takes the world
    /// apart.
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
                // The job still runs while it gives up its part of the world.
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

//! Measuring a workload on a target, as will-it-scale does.
//!
//! A [`Target`] starts tasks and hands out a [`Running`]; [`measure()`] reads the
//! counters of that at intervals. Neither knows how the other is made, so the same code
//! measures the kernel of this computer, scalevm's own VM on threads and a simulated
//! machine in virtual time.

mod failure;
pub mod interrupt;
mod job;
mod lateness;
mod measure;
mod reading;
mod recorded;
mod watch;

pub use failure::Failure;
pub use job::{Body, COMPLETIONS, Film, Job, OPERATIONS, Own, needs_os};
pub use lateness::Lateness;
pub use measure::{Outcome, Sample, Schedule, measure};
pub use reading::Reading;
pub use recorded::Recorded;
pub use stats::record::Mode;
pub use watch::{Bars, Phase, Progress, Together, Watch};

use hosted::Hosted;
use std::fmt;
use std::io::{self, Write};
use std::ptr::NonNull;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use workloads::{Counter, Feature, Timed, Workload};

/// The most tasks one measurement may have, as in will-it-scale.
pub const MAX_TASKS: u32 = 2048;

/// The plan of a run.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The work of each task.
    pub workload: Job,
    /// The number of tasks that run it.
    pub tasks: usize,
    /// True if they share an address space.
    pub mode: Mode,
    /// The number to which they count together, if there is an end.
    pub count: Option<u64>,
}

impl Plan {
    /// The plan of running `job` with `tasks` tasks, up to `count` operations. The tasks of a
    /// recorded program are its copies, or threads in one copy, and it is counted by its runs.
    pub fn of(job: Job, tasks: usize, mode: Mode, count: Option<u64>) -> Self {
        let plan = Plan {
            workload: job,
            tasks,
            mode,
            count,
        };
        let Job::Recorded(program, _) = job else {
            return plan;
        };
        let threads = (mode == Mode::Threads).then_some(tasks);
        let replay = program.workload(threads).replay();
        let operations = replay.map_or(1, |replay| replay.operations);
        Plan {
            workload: Job::Recorded(program, threads),
            tasks: threads.map_or(tasks, |_| 1),
            count: count.map(|runs| runs * operations),
            ..plan
        }
    }

    /// The number of tasks that the user has asked for.
    pub fn width(&self) -> usize {
        match self.workload {
            Job::Recorded(_, Some(threads)) => threads,
            _ => self.tasks,
        }
    }

    /// Returns true if a scheduler must deal the tasks over `cpus` CPUs: there are more tasks than
    /// these, or tasks that start others.
    pub fn needs_scheduler(&self, cpus: usize) -> bool {
        self.tasks > cpus || self.workload.uses(Feature::Recording)
    }

    /// The counter of the operations beyond each task's first, where operations are dealt out.
    pub fn supply(&self) -> Counter {
        let count = self.count.unwrap_or_default();
        Counter::with_limit(count.saturating_sub(self.tasks as u64))
    }

    /// The counter of `task`.
    ///
    /// # Safety
    /// `supply` outlives the counter, and lies at this address in each process that calls
    /// [`Counter::add`].
    pub unsafe fn counter(&self, task: usize, supply: NonNull<Counter>) -> Counter {
        let tasks = self.tasks as u64;
        let is_dealt = self.workload.known().is_ok_and(Workload::is_dealt);
        match self.count {
            None => Counter::new(),
            // SAFETY: the caller's promise.
            Some(_) if is_dealt => unsafe { Counter::dealt(supply) },
            Some(count) => {
                Counter::with_limit(count / tasks + u64::from((task as u64) < count % tasks))
            }
        }
    }
}

/// The times of a run with an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From the beginning to the end.
    pub real: Duration,
    /// The tasks' time outside of the kernel, of all together.
    pub user: Duration,
    /// Their time in it, that in which they waited for its locks included.
    pub sys: Duration,
    /// Their page faults, where a kernel counts them.
    pub faults: Option<u64>,
}

/// Something that runs workloads.
pub trait Target {
    /// Starts the tasks; when this returns, all of them are in their loops or about
    /// to enter them.
    fn start(&self, plan: &Plan) -> Result<Box<dyn Running>, Failure>;

    /// Lets the tasks count to the plan's count, and returns the time taken. If chance plays a
    /// part, it is that of sample number `sample`.
    fn complete(&self, plan: &Plan, sample: u32) -> Result<Times, Failure>;

    /// Lets the last task of the plan play `film` to its end, which is the plan's job, while the
    /// others work.
    fn play(&self, plan: &Plan, film: &'static Film) -> Result<(), Failure>;
}

/// Tasks at work. Dropping it ends them.
pub trait Running {
    /// Each task's count so far.
    fn counts(&self, into: &mut [u64]);

    /// The target's clock, from wherever it began: real, unless the target's time is
    /// virtual.
    fn now(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    /// Lets the tasks work for about `span`; shorter if the user interrupts. Real time
    /// passes by itself.
    fn advance(&mut self, span: Duration) {
        interrupt::sleep(span);
    }

    /// From now on, lets each task spend `time` outside of the system before each operation.
    /// Returns false if the tasks cannot.
    fn delay(&mut self, _time: Duration) -> bool {
        false
    }

    /// The operations of all tasks so far that began after a delay.
    fn timed(&self) -> Timed {
        Timed::default()
    }

    /// Fails unless each task is still at work.
    fn check(&mut self) -> Result<(), Failure>;

    /// The processes that the tasks are, or run in, for outside observers; processes that
    /// these start belong to the tasks too. None if no process of this computer is at work.
    fn pids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Threads in these processes that only drive the tasks, and so are none.
    fn drivers(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The machine whose scheduler deals the tasks over threads of this process; none if a
    /// scheduler of the kernel runs them.
    fn scheduled(&self) -> Option<&Hosted> {
        None
    }

    /// The tasks' bottleneck during the first sample, if the target sees it at no cost.
    fn bottleneck(&self) -> Option<String> {
        None
    }

    /// Ends the tasks. A task that had failed by then is an error.
    fn stop(self: Box<Self>) -> Result<(), Failure>;
}

/// Prints a line on standard error; one that cannot be written is lost.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

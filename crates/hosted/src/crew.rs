//! A machine whose threads run the tasks of a scheduler: the scheduler, the contexts, and how
//! threads and tasks come and go.

use crate::context::Pool;
use crate::interrupt::Member;
use crate::{Hosted, Off, cpu, words};
use core::ptr::{from_ref, with_exposed_provenance};
use core::sync::atomic::{AtomicUsize, Ordering};
use machine::{CpuRange, Job, Scheduler, Topology};
use std::any::Any;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

/// The part of a machine that only one with a scheduler has.
pub(crate) struct Crew {
    // Dropped before the scheduler, whose loop the CPUs' contexts run.
    pub(crate) pool: Pool,
    scheduler: Box<dyn Scheduler>,
    /// The CPUs.
    pub(crate) members: Box<[Member]>,
    /// Jobs and tasks that have not ended.
    tasks: AtomicUsize,
    /// The payload of the first task to panic.
    pub(crate) panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Hosted {
    /// Gives the machine the scheduler that `make` makes of its CPUs. From now on the jobs of
    /// [`Hosted::deal`] and [`machine::Execute::execute`] are tasks; there may be more tasks than
    /// CPUs. A thread that attaches itself ([`Hosted::attach`], [`Hosted::on_cpu`]) is still a
    /// CPU with one task.
    ///
    /// # Errors
    /// If the host refuses the addresses for stacks (8 GiB).
    ///
    /// # Panics
    /// If the machine has a scheduler.
    pub fn schedule<S: Scheduler + 'static>(
        &self,
        make: impl FnOnce(CpuRange) -> S,
    ) -> io::Result<()> {
        let cpus = self.cpus();
        let crew = Crew {
            pool: Pool::new()?,
            scheduler: Box::new(make(cpus)),
            members: (0..cpus.len()).map(Member::new).collect(),
            tasks: AtomicUsize::new(0),
            panic: Mutex::default(),
        };
        crew.boot();
        let first = self.inner.crew.set(crew).is_ok();
        assert!(first, "a machine has one scheduler");
        Ok(())
    }

    /// Returns true if the machine has a scheduler.
    pub fn is_scheduled(&self) -> bool {
        self.inner.crew.get().is_some()
    }

    /// Deals jobs for the scheduler over the CPUs, which take them in [`Hosted::work`].
    ///
    /// # Panics
    /// If the machine has no scheduler.
    pub fn deal(&self, jobs: Vec<Job>) {
        let crew = self.crew();
        crew.has_begun(jobs.len());
        let turns = (0..crew.members.len()).cycle();
        jobs.into_iter()
            .zip(turns)
            .for_each(|(job, cpu)| crew.members[cpu].bring(job));
    }

    /// Makes the calling thread CPU `index` for the rest of its life ([`Hosted::attach`]), and runs
    /// tasks of the scheduler until there is none on any CPU. All CPUs are to do so at the same
    /// time: a job dealt to one waits for its thread.
    ///
    /// # Panics
    /// If the machine has no scheduler, there is no such CPU, another thread keeps it, or the
    /// calling thread is already a CPU. A panic of a task is passed on by one of the threads.
    pub fn work(&self, index: usize) {
        self.attach(index);
        let crew = self.crew();
        words::CREW.set(from_ref(crew).expose_provenance());
        crew.run();
        words::CREW.set(0);
        let panic = crew
            .panic
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// The time that the tasks of the scheduler have been off CPUs so far, up to the last return of
    /// each.
    pub fn off(&self) -> Off {
        let members = self.crew().members.iter();
        members
            .map(Member::off)
            .fold(Off::default(), |sum, off| Off {
                blocked: sum.blocked + off.blocked,
                queued: sum.queued + off.queued,
            })
    }

    fn crew(&self) -> &Crew {
        let crew = self.inner.crew.get();
        crew.expect("the machine has a scheduler")
    }
}

/// Starts a task on the calling CPU's machine.
///
/// # Panics
/// If no scheduler's task calls.
pub fn spawn(job: Job) {
    let crew = Crew::current().expect("the machine has a scheduler");
    crew.scheduler().start(job);
}

/// Calls `wait`, which waits for another task's work. The time that the calling task is blocked
/// meanwhile is only in the other task's account, if both are a scheduler's.
pub fn stand_by<R>(wait: impl FnOnce() -> R) -> R {
    let mark = |stands_by| {
        if let Some(crew) = Crew::current() {
            let context = crew.here().context.load(Ordering::Relaxed);
            crew.pool.stand_by(context, stands_by);
        }
    };
    mark(true);
    let waited = wait();
    mark(false);
    waited
}

/// Nanoseconds that the calling task has been off CPUs so far: blocked, or ready while
/// others ran. `None` if it is not a scheduler's.
pub fn off_cpu() -> Option<u64> {
    let crew = Crew::current()?;
    Some(crew.pool.off(crew.here().context.load(Ordering::Relaxed)))
}

impl Crew {
    /// The crew of the calling thread, if it works in one.
    #[inline]
    pub(crate) fn current() -> Option<&'static Crew> {
        let crew = with_exposed_provenance::<Crew>(words::CREW.get());
        // SAFETY: set in `Hosted::work`, whose machine outlives the code on its CPUs, and nothing
        // else gets here.
        unsafe { crew.as_ref() }
    }

    /// The scheduler.
    pub(crate) fn scheduler(&'static self) -> &'static dyn Scheduler {
        &*self.scheduler
    }

    /// The calling CPU; after a switch that may be another one.
    pub(crate) fn here(&self) -> &Member {
        &self.members[cpu::current().index()]
    }

    /// Counts jobs or tasks that have begun.
    pub(crate) fn has_begun(&self, count: usize) {
        self.tasks.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts a job that has become a task, or a task that has ended; the CPU of the last one tells
    /// the others.
    pub(crate) fn has_ended(&self) {
        // Release and acquire: the CPU whose task is the last sees all that the others did.
        if self.tasks.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.members.iter().for_each(Member::interrupt);
        }
    }

    /// Returns true if no job and no task is left.
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the release in `has_ended`.
        self.tasks.load(Ordering::Acquire) == 0
    }

    /// Returns true if a CPU runs the task with these words; `None` if no task has them.
    pub(crate) fn is_running(&self, locals: usize) -> Option<bool> {
        self.pool.is_running(locals)
    }
}

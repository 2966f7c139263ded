//! Tasks reserved before they begin.

use crate::{Policy, Sched, TaskRef, Why};
use alloc::boxed::Box;
use machine::{Contexts, Job, SharedCell};

/// All that a new task needs: with it, the task can begin even if no memory is left.
///
/// If it is dropped, a task that does nothing begins and ends.
#[must_use = "it is for a task to begin"]
pub struct NewTask<M: Contexts, P: Policy<M>> {
    sched: &'static Sched<M, P>,
    task: TaskRef<M, P>,
    job: Option<Job>,
}

impl<M: Contexts, P: Policy<M>> Sched<M, P> {
    /// What a new task needs; `None` if memory is short.
    pub fn reserve(&'static self) -> Option<NewTask<M, P>> {
        let pin = M::pin();
        let cpu = self.cpus.get(&pin);
        let task = cpu.free(&pin, |list| self.table.take(list))?;
        let Some(context) = self.context(task) else {
            cpu.free(&pin, |list| self.table.give(list, task));
            return None;
        };
        // SAFETY: no other task knows the task yet.
        unsafe { *task.context.write() = Some(context) };
        Some(NewTask {
            sched: self,
            task,
            job: None,
        })
    }

    /// A context for a new task, which does the task's job; `None` if memory is short.
    fn context(&'static self, task: TaskRef<M, P>) -> Option<M::Context> {
        let begin = move || {
            let pin = M::first_pin();
            self.arrive();
            drop(pin);
            // SAFETY: the maker has handed the task over; the job is its own from then on.
            let job = unsafe { (*task.job.write()).take() };
            job.expect("a task has a job")();
        };
        let exit = move || self.exit();
        M::create(Box::new(begin), Box::new(exit))
    }
}

impl<M: Contexts, P: Policy<M>> NewTask<M, P> {
    /// Starts the task, which does `job`, on the calling CPU unless the scheduler knows a better
    /// one.
    pub fn start(mut self, job: Job) {
        self.job = Some(job);
    }
}

impl<M: Contexts, P: Policy<M>> Drop for NewTask<M, P> {
    fn drop(&mut self) {
        let (sched, task) = (self.sched, self.task);
        let job = self.job.take().unwrap_or_else(|| Box::new(|| ()));
        let pin = M::pin();
        let index = sched.cpus.index(&pin);
        let now = M::now();
        // SAFETY: no other task knows the task yet.
        unsafe { *task.job.write() = Some(job) };
        task.set_cpu(index);
        sched
            .policy
            .begin(task, sched.cpus.of(index).current(&pin), now);
        sched.hand_over(&pin, task, Why::New, now);
        sched.set_timer(&pin, now);
    }
}

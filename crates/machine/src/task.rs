//! Tasks: parking, time, task-local words, and running one job on each CPU.

use alloc::{boxed::Box, vec::Vec};
use core::cell::Cell;

/// Parking of tasks: one permit each, as in a binary semaphore.
///
/// A waiter publishes its [`Tasks::current_task`], then parks until its
/// condition holds; a waker makes the condition true, then unparks. `park` may
/// return early, so it stands in a loop. A permit left by an `unpark` that found
/// nobody parked makes the next `park` return at once, so no wake-up is lost.
/// `unpark` synchronizes with the `park` it ends (release, acquire).
pub trait Tasks {
    /// Names a task. May be used after the task has ended; it then does nothing.
    type Task: Copy + Send + Sync + PartialEq + 'static;

    /// The calling task.
    fn current_task() -> Self::Task;

    /// Blocks the calling task until its permit is there, and takes it.
    fn park();

    /// Gives `task` its permit.
    fn unpark(task: Self::Task);

    /// Gives the CPU to whoever else wants it.
    fn yield_now();

    /// Words that belong to the calling task, all 0 at first.
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R;

    /// Where values live that exist once for all tasks which can meet.
    fn anchor() -> &'static crate::Anchor;
}

/// How many words a task has for itself.
pub const LOCAL_WORDS: usize = 64;

/// A task's own words; `sync` keeps queue nodes and the stack of held locks in
/// them. The machine drops them when the task ends.
pub struct Locals {
    /// The words.
    pub words: [Cell<usize>; LOCAL_WORDS],
    /// Called when the task ends, to free what the words own.
    pub at_exit: Cell<Option<fn(&Locals)>>,
}

impl Locals {
    /// All zero.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const ZERO: Locals = Locals {
        words: [const { Cell::new(0) }; LOCAL_WORDS],
        at_exit: Cell::new(None),
    };
}

impl Drop for Locals {
    fn drop(&mut self) {
        if let Some(at_exit) = self.at_exit.get() {
            at_exit(self);
        }
    }
}

/// Time.
pub trait Clock {
    /// Nanoseconds since some fixed moment; never goes back.
    fn now() -> u64;

    /// Blocks the calling task until then; not at all if that is past. A machine without time of
    /// its own only yields.
    fn sleep_until(time: u64);
}

/// What one CPU is to do.
pub type Job = Box<dyn FnOnce() + Send>;

/// Running jobs, one on each CPU.
pub trait Execute: crate::Machine {
    /// Runs `jobs[i]` on CPU `i`, all at the same time, and returns when the
    /// last has ended. A panic of a job is passed on.
    ///
    /// # Panics
    /// If there are more jobs than CPUs, or one of the CPUs is in use.
    fn execute(&self, jobs: Vec<Job>);
}

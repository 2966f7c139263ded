//! Tasks: parking, time, task-local words, and running one job on each CPU.

use alloc::{boxed::Box, vec::Vec};
use core::cell::Cell;

/// Parking of tasks: one permit each, as in a binary semaphore.
///
/// A waiter publishes its [`Tasks::current_task`], then parks until its condition holds; a waker
/// makes the condition true, then unparks. `park` may return early, so call it in a loop. An
/// `unpark` of a task that is not parked leaves a permit, and the next `park` returns at once, so
/// no wake-up is lost. `unpark` synchronizes with the `park` it ends (release, acquire).
pub trait Tasks {
    /// Names a task. A name may outlive its task; unparking it then has no effect.
    type Task: Copy + Send + Sync + PartialEq + 'static;

    /// The calling task.
    fn current_task() -> Self::Task;

    /// Blocks the calling task until it has a permit, and consumes it. The task holds no
    /// [`Cpus::Pin`](crate::Cpus::Pin).
    fn park();

    /// Gives `task` its permit.
    fn unpark(task: Self::Task);

    /// Gives the CPU to another ready task, if there is one. The caller holds no
    /// [`Cpus::Pin`](crate::Cpus::Pin).
    fn yield_now();

    /// Words that belong to the calling task, all 0 at first.
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R;

    /// A point at which the calling task may be preempted: where a kernel returns to user mode, and
    /// now and then while the task is there. The caller holds no [`Cpus::Pin`](crate::Cpus::Pin).
    /// Nothing happens on a machine whose tasks own their CPUs.
    #[inline]
    fn safe_point() {}

    /// Returns true if the task whose [`Locals`] are at this address runs on a CPU; `None` on a
    /// machine that does not know. A hint: it may be out of date, and the task gone.
    #[inline]
    fn is_running(_locals: usize) -> Option<bool> {
        None
    }

    /// Returns true if the calling CPU has been asked to run another task: a hint for a task that
    /// spins.
    #[inline]
    fn is_wanted() -> bool {
        false
    }

    /// The place of values that exist once for all tasks that can meet.
    fn anchor() -> &'static crate::Anchor;
}

/// Words of each task.
pub const LOCAL_WORDS: usize = 64;

/// A task's own words; `sync` keeps queue nodes and the stack of held locks in
/// them. The machine drops them when the task ends.
#[derive(Debug)]
pub struct Locals {
    /// The words.
    pub words: [Cell<usize>; LOCAL_WORDS],
    /// Called when the task ends, to free what the words own.
    pub at_exit: Cell<Option<fn(&Locals)>>,
    /// Called when the task is back on a CPU, pinned, after another one ran there or elsewhere: to
    /// activate its address space.
    pub at_switch: Cell<Option<fn(&Locals)>>,
}

impl Locals {
    /// All zero.
    #[allow(clippy::declare_interior_mutable_const)]
    pub const ZERO: Locals = Locals {
        words: [const { Cell::new(0) }; LOCAL_WORDS],
        at_exit: Cell::new(None),
        at_switch: Cell::new(None),
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
    /// True if reading the clock takes no time of its own, so that each acquisition of a lock may
    /// be timed without changing the measurement.
    const FREE: bool = false;

    /// Nanoseconds since some fixed moment; never goes back.
    fn now() -> u64;

    /// Blocks the calling task until `time`; returns at once if that is past. A machine without
    /// time of its own only yields. The task holds no [`Cpus::Pin`](crate::Cpus::Pin).
    fn sleep_until(time: u64);
}

/// The work of one CPU.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs one job on each CPU.
pub trait Execute: crate::Machine {
    /// Runs `jobs[i]` on CPU `i`, all at the same time, and returns when the last has ended: its
    /// task's [`Locals`] are dropped by then, and the CPU is free for another. A panic of a job is
    /// passed on.
    ///
    /// # Panics
    /// If there are more jobs than CPUs, or one of the CPUs is in use.
    fn execute(&self, jobs: Vec<Job>);
}

//! A scheduler's requirements of a machine without tasks of its own, and the machine's requests to
//! its scheduler.
//!
//! # Contexts
//! A CPU runs one context at a time: a stack, registers and a task's [`Locals`](crate::Locals). It
//! continues with another one only by [`Contexts::switch`], and by the end of a context's job. Each
//! CPU begins with a context of its own, in which the machine calls [`Scheduler::run`].
//!
//! # Interrupts
//! A CPU's timer and a kick by another CPU interrupt it. The machine then calls
//! [`Scheduler::interrupt`], on that CPU and in the context that it runs, at the next *safe point*:
//! a moment at which the task may be taken off its CPU. No safe point lies inside a
//! [`Cpus::Pin`](crate::Cpus::Pin). One is where a task computes for itself, where
//! [`Tasks::safe_point`](crate::Tasks::safe_point) says so, and where a CPU waits for an interrupt.
//! Several interrupts may become one call.

use crate::{Job, Machine};
use alloc::boxed::Box;

/// A machine whose CPUs switch between contexts. All of it is about the calling CPU and its
/// machine.
pub trait Contexts: Machine {
    /// Names a context, until its job has ended.
    type Context: Copy + Send + Sync + PartialEq + 'static;

    /// Makes a context that runs `job` when a CPU first switches to it, then drops the task's
    /// [`Locals`](crate::Locals), and then calls `exit`, which has words of its own and returns the
    /// context that the CPU continues with. The machine frees the ended one when the CPU has left
    /// it. `None` if memory is short.
    ///
    /// A context begins pinned: `job` first takes that pin with [`Contexts::first_pin`] and drops
    /// it when the switch is over. `exit` leaves a pin behind ([`core::mem::forget`]), which ends
    /// with the context.
    fn create(job: Job, exit: Box<dyn FnOnce() -> Self::Context + Send>) -> Option<Self::Context>;

    /// The calling context.
    fn context() -> Self::Context;

    /// The pin with which the calling context began; called once.
    fn first_pin() -> Self::Pin;

    /// The calling CPU continues with `to`; returns when some CPU switches to the calling context.
    /// The caller's earlier stores are visible there (release, acquire).
    ///
    /// `ready` is when `to` became ready to run, by the machine's clock: for accounts only.
    ///
    /// # Safety
    /// No CPU runs `to`, and none but the caller is about to. The caller holds one pin, which it
    /// drops after the switch: the pin's CPU may be another by then.
    unsafe fn switch(to: Self::Context, ready: u64);

    /// Asks for an interrupt of the calling CPU at `time` nanoseconds, instead of the one it asked
    /// for before; for none if that is `u64::MAX`.
    fn set_timer(time: u64);

    /// Interrupts the CPU with this index. For the calling one no interrupt is on its way: its
    /// scheduler is asked at the next safe point.
    fn kick(cpu: usize);

    /// Waits until the calling CPU has an interrupt, or returns at once if it has one already; then
    /// drops `pin`, at which the interrupt is delivered.
    fn wait_for_interrupt(pin: Self::Pin);
}

/// A task's name, given by its scheduler. It may outlive its task, and is not given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskName(pub u64);

/// Decides which task runs where.
///
/// A machine that has one implements [`Tasks`](crate::Tasks) and
/// [`Clock::sleep_until`](crate::Clock::sleep_until) by it. All methods are called on the machine's
/// CPUs. The scheduler stays in place as long as code runs there, hence `'static`.
pub trait Scheduler: Send + Sync {
    /// Runs tasks on the calling CPU, in the CPU's own context, forever.
    fn run(&'static self) -> !;

    /// Starts a task that runs `job`, first on the calling CPU unless the scheduler knows a better
    /// one.
    ///
    /// # Panics
    /// If memory is short.
    fn start(&'static self, job: Job);

    /// Handles an interrupt of the calling CPU. Called at a safe point; may switch.
    fn interrupt(&self);

    /// The name of the calling task ([`Tasks::current_task`](crate::Tasks::current_task)).
    fn current_task(&self) -> TaskName;

    /// Blocks the calling task until it has a permit ([`Tasks::park`](crate::Tasks::park)).
    fn park(&self);

    /// Gives `task` its permit ([`Tasks::unpark`](crate::Tasks::unpark)).
    fn unpark(&self, task: TaskName);

    /// Gives the CPU to another ready task ([`Tasks::yield_now`](crate::Tasks::yield_now)).
    fn yield_now(&self);

    /// Blocks the calling task until `time` ([`Clock::sleep_until`](crate::Clock::sleep_until)).
    fn sleep_until(&self, time: u64);
}

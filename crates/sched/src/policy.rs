//! The decisions of a scheduler, separate from how they are carried out.

use crate::TaskRef;
use machine::{Contexts, CpuRange};

/// Why the current task may leave its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It waits to be unparked.
    Parks,
    /// It waits for a time.
    Sleeps,
    /// It has ended.
    Ends,
    /// It lets others go first.
    Yields,
    /// [`Policy::tick`] asked for its preemption.
    Preempted,
}

impl Leaving {
    /// Returns true if the task could go on at once.
    pub fn stays_ready(self) -> bool {
        matches!(self, Leaving::Yields | Leaving::Preempted)
    }
}

/// Why a task is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has never run.
    New,
    /// It was parked.
    Woken,
}

/// What the scheduler has to do at an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// True if the scheduler is to ask [`Policy::next`] for another task.
    pub preempt: bool,
    /// A CPU to interrupt, because it has received a task.
    pub kick: Option<usize>,
}

/// Queues of ready tasks, and the choice of the next.
///
/// The policy owns a task that is ready and runs nowhere, from [`Policy::ready`] or
/// [`Policy::put_back`] until [`Policy::next`] returns it. All methods with a `cpu` or `here` are
/// called on that CPU, pinned; none may park. Times are nanoseconds of [`machine::Clock::now`].
///
/// # Locks
/// [`Policy::lock`] comes before [`Policy::next`], and [`Policy::unlock`] follows on the same CPU:
/// at once if no switch happens, else after the switch, by the context that goes on. A policy with
/// one lock for all CPUs, or one for each CPU's queue, holds it from the first call to the second.
/// `next` and `put_back` are called in between, all others outside; those take the locks they need.
///
/// # Safety
/// - `next` returns a task only if `ready` or `put_back` handed it over, and each time once.
/// - All that one CPU did before it handed a task over is visible to the one that `next` returns it
///   to (release, acquire).
/// - A [`TaskRef`] is not used after its task has ended, except to compare it and its generation,
///   nor after the policy is dropped.
pub unsafe trait Policy<M: Contexts>: Sized + Send + Sync + 'static {
    /// The policy's name, as the command prints it.
    const NAME: &'static str;

    /// The policy's words in each task. They outlive the task: [`Policy::begin`] prepares them for
    /// the next one in the same place.
    type Entry: Send + Sync;

    /// A policy for these CPUs, without tasks.
    fn new(cpus: CpuRange) -> Self;

    /// The words of a place that has had no task.
    fn entry() -> Self::Entry;

    /// Prepares the words of a new task, which [`Policy::ready`] will hand over. No other task
    /// knows it yet. `parent` is the task that makes it.
    fn begin(&self, task: TaskRef<M, Self>, parent: Option<TaskRef<M, Self>>, now: u64);

    /// Acquires the lock that [`Policy::next`] needs on `cpu`, if the policy has one.
    #[inline]
    fn lock(&self, cpu: usize) {
        let _ = cpu;
    }

    /// Releases what [`Policy::lock`] has acquired on `cpu`.
    #[inline]
    fn unlock(&self, cpu: usize) {
        let _ = cpu;
    }

    /// The task that `cpu` continues with. `current` is the one it runs, `None` in the idle
    /// context.
    ///
    /// `None` means the idle context, if the current task cannot go on or there is none; else that
    /// the current task goes on. The current task itself is never returned: the policy does not own
    /// it.
    ///
    /// With the returned task the CPU is no longer idle ([`Policy::idle`]).
    fn next(
        &self,
        cpu: usize,
        current: Option<(TaskRef<M, Self>, Leaving)>,
        now: u64,
    ) -> Option<TaskRef<M, Self>>;

    /// Takes back `task`, which [`Policy::next`] has replaced although it could go on. It has left
    /// `cpu` for the reason `leaving`, and any CPU can run it. Returns a CPU to interrupt, if that
    /// should take it.
    fn put_back(
        &self,
        cpu: usize,
        task: TaskRef<M, Self>,
        leaving: Leaving,
        now: u64,
    ) -> Option<usize>;

    /// Takes `task`, which is ready to run. Returns the CPU that must be interrupted to notice it,
    /// if one must: an idle one, or one whose current task should be preempted. If that is `here`,
    /// the interrupt comes at the caller's next safe point.
    fn ready(&self, task: TaskRef<M, Self>, here: usize, why: Why, now: u64) -> Option<usize>;

    /// Publishes that `cpu` has found no task and is about to wait for an interrupt, then looks
    /// once more. Returns false if there is work after all.
    ///
    /// A CPU that hands a task over afterwards sees this one idle, and interrupts it or another
    /// one: otherwise the task would wait while a CPU is idle.
    fn idle(&self, cpu: usize) -> bool;

    /// Decides what `cpu` does, which was interrupted while it ran `current`.
    fn tick(&self, cpu: usize, current: TaskRef<M, Self>, now: u64) -> Tick;

    /// When `cpu` wants the next [`Policy::tick`] if it continues with `current`; `u64::MAX` for
    /// never. Asked after each decision that concerns the CPU, among them the `ready` of a task
    /// made there. The interrupt may come earlier.
    fn deadline(&self, cpu: usize, current: TaskRef<M, Self>, now: u64) -> u64;
}

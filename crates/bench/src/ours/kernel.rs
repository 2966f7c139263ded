//! Entries into the kernel of a machine and returns, and the tasks' user and system time.

use super::stores::Stores;
use crate::harness::Times;
use hosted::Hosted;
use ipc::Entry;
use machine::{Clock, Job, Tasks};
use sim::Sim;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// A machine whose tasks call a kernel.
pub trait SystemCalls: Stores + Clock {
    /// Enters a system call: charges its cost in addition to that of the lines it touches, and
    /// computes `private` nanoseconds that the machine does not see.
    #[inline]
    fn enter(_private: f64) {}

    /// Nanoseconds that the calling task has been off CPUs so far; none if it is no scheduler's.
    fn off_cpu() -> Option<u64>;

    /// Returns true if the machine has a scheduler, so that children are tasks of their own.
    fn has_tasks() -> bool {
        Self::off_cpu().is_some()
    }

    /// Starts a task that runs `job`, where [`SystemCalls::has_tasks`].
    fn start(job: Job);

    /// Starts a task that does `work`, where [`SystemCalls::has_tasks`].
    ///
    /// # Safety
    /// The objects that `work` borrows outlive its last use of them, and may be used by two tasks
    /// at the same time, as far as both do.
    unsafe fn spawn<'a>(work: impl FnOnce() + 'a) {
        /// Work of a task.
        struct Task<T>(T);
        // SAFETY: a task moves from thread to thread with all its possessions; the caller answers
        // for borrowed objects.
        unsafe impl<T> Send for Task<T> {}
        impl<T: FnOnce()> Task<T> {
            fn run(self) {
                (self.0)();
            }
        }
        let work = Task(work);
        let job: Box<dyn FnOnce() + Send + 'a> = Box::new(move || work.run());
        // SAFETY: the caller answers for the objects that the job borrows.
        Self::start(unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + 'a>, Job>(job) });
    }

    /// Waits for a child's end; that time counts as the child's.
    fn stand_by<R>(wait: impl FnOnce() -> R) -> R;

    /// Nanoseconds that the calling task has been off its CPU so far, wrapping.
    fn off() -> usize {
        match Self::off_cpu() {
            Some(nanoseconds) => nanoseconds as usize,
            None => sync::sleepq::slept::<Self>(),
        }
    }

    /// Lets the task compute for `nanoseconds`.
    fn compute(nanoseconds: u64);
}

impl SystemCalls for Hosted {
    fn start(job: Job) {
        hosted::spawn(job);
    }

    fn stand_by<R>(wait: impl FnOnce() -> R) -> R {
        hosted::stand_by(wait)
    }

    fn off_cpu() -> Option<u64> {
        hosted::off_cpu()
    }

    fn compute(nanoseconds: u64) {
        /// Between two safe points.
        const STEP: u64 = 50_000;
        let mut left = nanoseconds;
        while left > 0 {
            Hosted::safe_point();
            workloads::work(left.min(STEP));
            left = left.saturating_sub(STEP);
        }
    }
}

impl SystemCalls for Sim {
    fn enter(private: f64) {
        sim::system_call();
        pass(private);
    }

    fn start(job: Job) {
        sim::spawn(job);
    }

    fn stand_by<R>(wait: impl FnOnce() -> R) -> R {
        sim::stand_by(wait)
    }

    fn off_cpu() -> Option<u64> {
        sim::off_cpu()
    }

    fn compute(nanoseconds: u64) {
        sim::compute(nanoseconds as f64);
    }
}

/// Lets the calling task compute for about `nanoseconds`.
pub fn pass(nanoseconds: f64) {
    /// By how much the computing of a call varies, at random, as a share.
    const JITTER: f64 = 0.1;
    const STEPS: u64 = 1 << 16;
    let chance = sim::dice(STEPS) as f64 / STEPS as f64;
    sim::compute(nanoseconds * (1.0 + JITTER * (2.0 * chance - 1.0)));
}

/// The time for which a task was awake, by kind, in nanoseconds, on lines of its own. Written by
/// the task; relaxed throughout: the reader has waited for the task.
#[derive(Default)]
#[repr(align(128))]
pub struct Ledger {
    user: AtomicU64,
    system: AtomicU64,
    /// The time off its CPU until now, by [`SystemCalls::off`].
    off: AtomicUsize,
    /// The time up to which it is written.
    until: AtomicU64,
}

/// One for each task.
pub type Ledgers = Arc<[Ledger]>;

impl Ledger {
    /// Makes ledgers for `tasks` tasks.
    pub fn of_tasks(tasks: usize) -> Ledgers {
        (0..tasks).map(|_| Ledger::default()).collect()
    }

    /// The times of the tasks of a run that took `real`.
    pub fn times(ledgers: &Ledgers, real: Duration) -> Times {
        let sum = |spent: fn(&Ledger) -> &AtomicU64| {
            Duration::from_nanos(ledgers.iter().map(|one| spent(one).load(Relaxed)).sum())
        };
        Times {
            real,
            user: sum(|one| &one.user),
            sys: sum(|one| &one.system),
            faults: None,
        }
    }

    /// The time at which the last task was in the kernel for the last time, by the machine's clock.
    pub fn end(ledgers: &Ledgers) -> u64 {
        let ends = ledgers.iter().map(|one| one.until.load(Relaxed));
        ends.max().unwrap_or(0)
    }

    /// Charges the time until `now`, except the part for which the calling task was off its CPU.
    fn charge<M: SystemCalls>(&self, to: &AtomicU64, now: u64) {
        let off = M::off();
        let since = self.off.swap(off, Relaxed);
        // Negative if a child, whose own time it is, and its parent charge at the same time.
        let asleep = (off.wrapping_sub(since) as isize).max(0);
        let awake = now.saturating_sub(asleep as u64);
        let spent = awake.saturating_sub(self.until.load(Relaxed));
        to.store(to.load(Relaxed) + spent, Relaxed);
        self.until.store(now, Relaxed);
    }
}

/// The number of a task among those that run together, and the ledgers of their time.
#[derive(Clone)]
pub struct Account {
    /// The task's number, from 0.
    pub task: usize,
    /// Nanoseconds that a call computes in addition to what the machine sees.
    pub private: f64,
    /// The ledgers of a watched run.
    pub ledgers: Option<Ledgers>,
}

impl Account {
    /// The account of work before the tasks begin.
    pub fn nobody() -> Self {
        Account {
            task: 0,
            private: 0.0,
            ledgers: None,
        }
    }

    fn ledger(&self) -> Option<&Ledger> {
        Some(&self.ledgers.as_ref()?[self.task])
    }

    /// The time, if there are ledgers.
    #[inline]
    pub fn now<M: SystemCalls>(&self) -> Option<u64> {
        self.ledgers.as_ref().map(|_| M::now())
    }

    /// Begins the task's time.
    pub fn begin<M: SystemCalls>(&self) {
        if let Some(ledger) = self.ledger() {
            ledger.off.store(M::off(), Relaxed);
            ledger.until.store(M::now(), Relaxed);
        }
    }

    /// Charges a system call of the task.
    #[inline]
    pub fn enter<M: SystemCalls>(&self) {
        self.left_user::<M>(self.now::<M>());
        M::enter(self.private);
    }

    /// Charges the task's time in the kernel since `at`, a result of [`Account::now`].
    #[inline]
    pub fn left_user<M: SystemCalls>(&self, at: Option<u64>) {
        if let (Some(ledger), Some(at)) = (self.ledger(), at) {
            ledger.charge::<M>(&ledger.user, at);
        }
    }

    /// Does `work` in the kernel.
    #[inline]
    #[track_caller]
    pub fn in_kernel<M: SystemCalls, R>(
        &self,
        kernel: &impl ipc::Kernel<M>,
        why: Entry,
        work: impl FnOnce() -> R,
    ) -> R {
        let result = self.to_the_end(kernel, why, work);
        M::safe_point();
        result
    }

    /// Does `work` in the kernel without a return to the task's program: nothing takes the task off
    /// its CPU on the way there, even if `work` has woken a task that waits for its end.
    #[inline]
    #[track_caller]
    pub fn to_the_end<M: SystemCalls, R>(
        &self,
        kernel: &impl ipc::Kernel<M>,
        why: Entry,
        work: impl FnOnce() -> R,
    ) -> R {
        self.enter::<M>();
        kernel.enter(why);
        let result = work();
        kernel.leave(why);
        self.left_system::<M>();
        result
    }

    /// Ends the task's time in the kernel.
    #[inline]
    pub fn leave<M: SystemCalls>(&self) {
        self.left_system::<M>();
        M::safe_point();
    }

    #[inline]
    fn left_system<M: SystemCalls>(&self) {
        if let Some(ledger) = self.ledger() {
            ledger.charge::<M>(&ledger.system, M::now());
        }
    }
}

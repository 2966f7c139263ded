//! The two locks that exist once per machine: `KERNEL_LOCK` and `SCHED_LOCK`.

use super::MpLock;
use core::sync::atomic::{AtomicBool, Ordering};
use machine::Machine;
use sync::lock_class;
use sync::off_cpu::GivenUp;

lock_class!(
    /// The lock of the whole kernel.
    pub KernelLock = "KERNEL_LOCK", rank 1
);
lock_class!(
    /// The lock of the scheduler and of the sleep queues. A leaf.
    pub SchedLock = "SCHED_LOCK", rank 90
);

/// The scheduler's locks: `sched_lock`, which guards the policy and the sleep queues, and
/// `kernel_lock`.
pub struct SchedulerLock<M: Machine> {
    /// The lock.
    pub lock: MpLock<M, SchedLock>,
    /// `kernel_lock`, which a task gives up while it is off its CPU.
    pub kernel: MpLock<M, KernelLock>,
    /// True if [`super::OpenBsd`] schedules the machine's tasks. Set before its first task runs, so
    /// relaxed: a task sees all that happened before it.
    schedules: AtomicBool,
}

impl<M: Machine> SchedulerLock<M> {
    /// Gives `KERNEL_LOCK` up and takes it again, as `mi_switch` does.
    const KERNEL: GivenUp = GivenUp {
        release: || Self::of_machine().kernel.release_all(),
        acquire: |times| Self::of_machine().kernel.lock_again(times),
    };

    /// The locks of the machine.
    pub fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| {
            let lock = MpLock::new();
            lock.label("SCHED_LOCK", "SCHED_LOCK's depths");
            let kernel = MpLock::given_up(&Self::KERNEL);
            kernel.label("KERNEL_LOCK", "KERNEL_LOCK's depths");
            SchedulerLock {
                lock,
                kernel,
                schedules: AtomicBool::new(false),
            }
        })
    }

    /// Returns true if a task that parks or sleeps while it holds the lock leaves it to its CPU,
    /// which chooses the next task under it. If not, the machine has another scheduler, which does
    /// not know the lock.
    pub fn schedules(&self) -> bool {
        self.schedules.load(Ordering::Relaxed)
    }

    /// The machine's lock, under which it is scheduled from now on.
    pub(super) fn schedule() -> &'static Self {
        let this = Self::of_machine();
        this.schedules.store(true, Ordering::Relaxed);
        this
    }
}

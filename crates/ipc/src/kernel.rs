//! How a kernel lets tasks in, and how they sleep there.

use machine::Machine;
use sync::sleepq::{Hashed, SleepQueue};

/// Why a task enters the kernel: a fault, or what its system call is about, as far as kernels tell
/// calls apart by what they lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A page fault.
    Fault,
    /// Mapping anonymous memory.
    MapAnonymous,
    /// Mapping a file.
    MapFile,
    /// Taking mappings away.
    Unmap,
    /// Changing the rights of mappings.
    Protect,
    /// What else there is to do with mappings: moving, advising, paging out.
    Memory,
    /// Moving the program break.
    Break,
    /// Making a process.
    Fork,
    /// Becoming another program.
    Exec,
    /// The end of a process.
    Exit,
    /// Waiting for the end of a process.
    Wait,
    /// Creating, opening or closing a file or a pipe.
    Descriptor,
    /// Reading or writing a file.
    File,
    /// Reading from a pipe.
    Read,
    /// Writing to a pipe.
    Write,
    /// Asking whether descriptors are ready, or waiting until one is.
    Poll,
    /// Waiting at a word of memory, or waking who does.
    Futex,
    /// Sleeping until some time.
    Sleep,
}

/// How a kernel lets tasks in and how they sleep there.
///
/// One for each machine that tasks share, made before them. [`Kernel::enter`] and [`Kernel::leave`]
/// come in pairs, on one task, and nest: a task in the kernel may fault. A task that sleeps
/// is in the kernel; whatever lock of the whole kernel it holds there, the kernel lets go
/// meanwhile.
///
/// Every sleep here may be ended by a signal, as a wait for another task's doings should be:
/// what a kernel locks to look for signals (`PCATCH`), it locks in [`Kernel::sleep`].
/// Sleeping for a lock is no affair of this trait.
pub trait Kernel<M: Machine>: Send + Sync + 'static {
    /// How many locks futexes are hashed to, for so many CPUs.
    fn futex_buckets(&self, cpus: usize) -> usize {
        FUTEX_BUCKETS * cpus
    }

    /// The calling task enters the kernel.
    fn enter(&self, _why: Entry) {}

    /// It is about to return, having entered for the same reason.
    fn leave(&self, _why: Entry) {}

    /// Sleeps on `key` until woken, if `still` holds; whether it slept. May return early, so
    /// it stands in a loop.
    ///
    /// `still` runs under a lock of the kernel's: whoever makes it false and then calls
    /// [`Kernel::wake`] finds the sleeper, or `still` sees the change. It must be short, take
    /// no lock and not sleep. The caller holds no lock. The time slept is counted by
    /// [`sync::sleepq::asleep`].
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool;

    /// Wakes the `count` tasks that have slept longest on `key`, which is only compared; how
    /// many there were. The caller holds no lock.
    fn wake(&self, key: *const (), count: usize) -> usize;

    /// Tells those who poll a pipe or the like that it may be ready (`selwakeup`), by `tell`, which
    /// wakes them. Called after every write and read, also if nobody polls. The caller
    /// holds no lock.
    fn select_wakeup(&self, tell: impl FnOnce()) {
        tell();
    }

    /// Sleeps until the machine's clock reads `time` nanoseconds.
    fn sleep_until(&self, time: u64) {
        sync::sleepq::asleep::<M>(|| M::sleep_until(time));
    }
}

/// Buckets of futexes for each CPU, by default: as Linux has.
const FUTEX_BUCKETS: usize = 256;

/// The default: no lock on the way in, and sleepers hashed by what they sleep on.
pub struct Own<M: Machine>(Hashed<M>);

impl<M: Machine> Own<M> {
    /// Nobody sleeps.
    pub fn new() -> Self {
        Own(Hashed::new())
    }
}

impl<M: Machine> Default for Own<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Kernel<M> for Own<M> {
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool {
        self.0.sleep(key, still)
    }

    fn wake(&self, key: *const (), count: usize) -> usize {
        self.0.wake(key, count)
    }
}

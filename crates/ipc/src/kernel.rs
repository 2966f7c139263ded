//! How tasks enter a kernel and sleep there.

use machine::Machine;
use sync::sleepq::{Hashed, SleepQueue};

/// Why a task enters the kernel: a fault, or the subject of its system call, as far as kernels take
/// different locks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A page fault.
    Fault,
    /// Mapping anonymous memory.
    MapAnonymous,
    /// Mapping a file.
    MapFile,
    /// Unmapping.
    Unmap,
    /// Changing the rights of mappings.
    Protect,
    /// Other work on mappings: moving, advising, paging out.
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
    /// Checking if descriptors are ready, or waiting until one is.
    Poll,
    /// Waiting at a word of memory, or waking its waiters.
    Futex,
    /// Sleeping until some time.
    Sleep,
}

/// How tasks enter a kernel and sleep there.
///
/// One for each machine that tasks share, made before them. [`Kernel::enter`] and [`Kernel::leave`]
/// come in pairs, on one task, and nest: a task in the kernel may fault. A task that sleeps is in
/// the kernel; the kernel releases any lock of the whole kernel that the task holds, and reacquires
/// it afterwards.
///
/// A signal may end every sleep here, as is usual for a wait for another task's action: a kernel
/// that locks something to check for signals (`PCATCH`) does so in [`Kernel::sleep`]. Sleeping for
/// a lock is outside this trait.
pub trait Kernel<M: Machine>: Send + Sync + 'static {
    /// The number of locks that futexes are hashed to, for this many CPUs.
    fn futex_buckets(&self, cpus: usize) -> usize {
        FUTEX_BUCKETS * cpus
    }

    /// Called when the calling task enters the kernel.
    fn enter(&self, _why: Entry) {}

    /// Called when the task is about to return; it had entered for the same reason.
    fn leave(&self, _why: Entry) {}

    /// Sleeps on `key` until woken, if `still` holds; returns true if it slept. It may return
    /// early, so call it in a loop.
    ///
    /// `still` runs under a lock of the kernel's: if a task makes it false and then calls
    /// [`Kernel::wake`], either the call finds the sleeper, or `still` sees the change. It must be
    /// short, take no lock and not sleep. The caller holds no lock. [`sync::sleepq::asleep`] counts
    /// the time slept.
    fn sleep(&self, key: *const (), still: impl FnOnce() -> bool) -> bool;

    /// Wakes the `count` tasks that have slept longest on `key`, which is only compared; returns
    /// how many there were. The caller holds no lock.
    fn wake(&self, key: *const (), count: usize) -> usize;

    /// Tells the pollers of a pipe or the like that it may be ready (`selwakeup`), by `tell`, which
    /// wakes them. Called after every write and read, even if no task polls. The caller holds no
    /// lock.
    fn select_wakeup(&self, tell: impl FnOnce()) {
        tell();
    }

    /// Sleeps until the machine's clock reads `time` nanoseconds.
    fn sleep_until(&self, time: u64) {
        sync::sleepq::asleep::<M>(|| M::sleep_until(time));
    }
}

/// Buckets of futexes per CPU, by default: Linux's number.
const FUTEX_BUCKETS: usize = 256;

/// The default: no lock on entry, and sleepers hashed by their key.
pub struct Own<M: Machine>(Hashed<M>);

impl<M: Machine> Own<M> {
    /// A kernel without sleepers.
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

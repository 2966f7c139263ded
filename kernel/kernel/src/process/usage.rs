//! The resources that threads and processes have used: time on CPUs, faults.
//!
//! The time on CPUs is all the time except that in which a thread sleeps or lets others run. The
//! kernel's share of it is sampled, as on Linux, by where timers and kicks find the thread. A new
//! sample changes the share of the whole time; what a caller is told never goes back.

use super::{Process, ThreadRef};
use crate::system::Lock;
use core::iter::Sum;
use core::ops::Add;
use core::sync::atomic::{AtomicU64, Ordering};
use machine::Clock;
use metal::Metal;

/// A thread's use of resources. Only the thread itself writes the numbers; others read single
/// ones: relaxed. Times are in cycles.
#[derive(Default)]
pub struct Usage {
    start: AtomicU64,
    /// The time off CPUs, up to the thread's last return.
    off: AtomicU64,
    /// When the thread left its CPU; 0 while it is on one.
    off_since: AtomicU64,
    user_samples: AtomicU64,
    kernel_samples: AtomicU64,
    faults: AtomicU64,
    sleeps: AtomicU64,
    /// What a caller was told last.
    told: Lock<Used>,
}

/// Resources used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Nanoseconds in user mode.
    pub user: u64,
    /// Nanoseconds in the kernel.
    pub kernel: u64,
    /// Faults that were served.
    pub faults: u64,
    /// Sleeps.
    pub sleeps: u64,
}

fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

impl Usage {
    /// Starts the account of a new thread.
    pub fn begin(&self) {
        self.start.store(metal::cycles(), Ordering::Relaxed);
    }

    /// When the thread began, in nanoseconds of the machine's clock.
    pub fn start(&self) -> u64 {
        let since = metal::cycles().saturating_sub(self.start.load(Ordering::Relaxed));
        Metal::now().saturating_sub(metal::nanoseconds(since))
    }

    /// Calls `wait`, in which the thread lets others run.
    pub fn away<R>(&self, wait: impl FnOnce() -> R) -> R {
        let since = metal::cycles();
        self.off_since.store(since, Ordering::Relaxed);
        let result = wait();
        add(&self.off, metal::cycles().saturating_sub(since));
        self.off_since.store(0, Ordering::Relaxed);
        result
    }

    /// Calls `sleep`, in which the thread sleeps.
    pub fn asleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
        add(&self.sleeps, 1);
        self.away(sleep)
    }

    /// Counts a fault.
    pub fn add_fault(&self) {
        add(&self.faults, 1);
    }

    /// Counts an interrupt that found the thread in user mode.
    pub fn sample_user(&self) {
        add(&self.user_samples, 1);
    }

    /// Counts an interrupt that found the thread in the kernel.
    pub fn sample_kernel(&self) {
        add(&self.kernel_samples, 1);
    }

    /// The resources used so far. No time is less than at an earlier call: if a new sample would
    /// shrink one, it stays, and the other has the rest.
    pub fn used(&self) -> Used {
        let mut told = self.told.lock();
        let time = self.time();
        if time >= told.time() {
            told.kernel = self.in_kernel(time).clamp(told.kernel, time - told.user);
            told.user = time - told.kernel;
        }
        told.faults = self.faults.load(Ordering::Relaxed);
        told.sleeps = self.sleeps.load(Ordering::Relaxed);
        *told
    }

    /// The time on CPUs, in nanoseconds. It can be too short while the thread returns to its CPU.
    fn time(&self) -> u64 {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let end = match read(&self.off_since) {
            0 => metal::cycles(),
            since => since,
        };
        let away = read(&self.start) + read(&self.off);
        metal::nanoseconds(end.saturating_sub(away))
    }

    /// The part of `time` in the kernel, by the samples. A thread that was never found in the
    /// kernel has not been in it for long.
    fn in_kernel(&self, time: u64) -> u64 {
        let kernel = self.kernel_samples.load(Ordering::Relaxed);
        let user = self.user_samples.load(Ordering::Relaxed);
        (u128::from(kernel) * u128::from(time) / u128::from(user + kernel).max(1)) as u64
    }
}

impl Used {
    /// The time in user mode and in the kernel, in nanoseconds.
    pub fn time(self) -> u64 {
        self.user + self.kernel
    }
}

impl Add for Used {
    type Output = Used;

    fn add(self, other: Used) -> Used {
        Used {
            user: self.user + other.user,
            kernel: self.kernel + other.kernel,
            faults: self.faults + other.faults,
            sleeps: self.sleeps + other.sleeps,
        }
    }
}

impl Sum for Used {
    fn sum<I: Iterator<Item = Used>>(all: I) -> Used {
        all.fold(Used::default(), Add::add)
    }
}

impl Process {
    /// The resources used by the process's threads, including those that have ended.
    pub fn used(&self) -> Used {
        // A thread that ends moves from one sum to the other under this lock.
        let threads = self.threads.lock();
        let living: Used = threads.iter().map(|thread| thread.usage.used()).sum();
        living + *self.used_by_ended.lock()
    }

    /// Removes a thread that has ended. Returns true if it was the last.
    pub(super) fn remove(&self, thread: &ThreadRef) -> bool {
        let mut threads = self.threads.lock();
        threads.retain(|other| !core::ptr::eq(&raw const **other, thread));
        let mut ended = self.used_by_ended.lock();
        *ended = *ended + thread.usage.used();
        threads.is_empty()
    }
}

//! Memory that the tasks share with whoever measures them.

use crate::harness::{Failure, Plan};
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitStatus;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use workloads::{Counter, Error};

const READY: u32 = 1;
const FAILED: u32 = 2;

/// One task's counter, and what became of the task on lines of its own.
#[repr(C, align(128))]
pub struct Slot {
    /// The counter.
    pub counter: Counter,
    state: AtomicU32,
    error: UnsafeCell<Option<Error>>,
}

// SAFETY: `error` is written once, by the slot's task, before its release store of
// FAILED, and read only behind an acquire load that saw FAILED.
unsafe impl Sync for Slot {}

impl Slot {
    /// By the task: it exists and is where it should be.
    pub fn ready(&self) {
        self.state.store(READY, Ordering::Release);
    }

    /// By the task: it gives up. At most once.
    pub fn fail(&self, error: Error) {
        // SAFETY: nobody reads before the store below.
        unsafe { *self.error.get() = Some(error) };
        // Pairs with the acquire load in `error`.
        self.state.store(FAILED, Ordering::Release);
    }

    /// Whether the task has come as far as `ready`.
    pub fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) != 0
    }

    /// Why the task gave up, if it did.
    pub fn error(&self) -> Option<Error> {
        if self.state.load(Ordering::Acquire) != FAILED {
            return None;
        }
        // SAFETY: written before the release store of FAILED that was just read,
        // and never again. A forked child runs the same program, so it writes the
        // layout that is read here; the type holds no pointers.
        unsafe { *self.error.get() }
    }
}

/// The slots of all tasks, in memory that forked children share.
pub struct Area {
    slots: NonNull<Slot>,
    tasks: usize,
}

// SAFETY: it owns the mapping; `Slot` is Sync and has no thread affinity.
unsafe impl Send for Area {}
// SAFETY: only shared references to `Slot`s are handed out.
unsafe impl Sync for Area {}

impl Area {
    /// Slots for the tasks of `plan`.
    pub fn new(plan: &Plan) -> io::Result<Self> {
        let area = Self::map(plan.tasks, None)?;
        area.clear(|task| plan.limit(task));
        Ok(area)
    }

    /// Slots for `tasks` tasks in a file without a name, through which another process
    /// may share them.
    pub fn with_file(tasks: usize) -> io::Result<(Self, OwnedFd)> {
        // SAFETY: a string that ends in zero.
        let file = unsafe { libc::memfd_create(c"scalevm".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else knows of it.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len((tasks * size_of::<Slot>()) as u64)?;
        let file = OwnedFd::from(file);
        let area = Self::map(tasks, Some(&file))?;
        area.clear(|_| u64::MAX);
        Ok((area, file))
    }

    /// The slots that another process of this program has made with [`Area::with_file`].
    pub fn of_file(tasks: usize, file: &OwnedFd) -> io::Result<Self> {
        Self::map(tasks, Some(file))
    }

    fn map(tasks: usize, file: Option<&OwnedFd>) -> io::Result<Self> {
        let (flags, file) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                tasks * size_of::<Slot>(),
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                file,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let slots = NonNull::new(start.cast::<Slot>()).expect("a mapping is not at 0");
        Ok(Area { slots, tasks })
    }

    /// Each task is to count to its `limit`.
    fn clear(&self, limit: impl Fn(usize) -> u64) {
        for task in 0..self.tasks {
            let slot = Slot {
                counter: Counter::with_limit(limit(task)),
                state: AtomicU32::new(0),
                error: UnsafeCell::new(None),
            };
            // SAFETY: within the mapping, which is page-aligned, and nobody else
            // knows of it yet.
            unsafe { self.slots.add(task).write(slot) };
        }
    }

    /// All slots, by task.
    pub fn slots(&self) -> &[Slot] {
        // SAFETY: `tasks` slots were written by `clear`, here or by whoever made the
        // file; the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.tasks) }
    }

    /// Why a task of `workload` has ended: what it says itself, or else that it has, with
    /// `status` if that is known.
    pub fn failure(
        &self,
        workload: &'static str,
        task: usize,
        status: Option<ExitStatus>,
    ) -> Failure {
        match self.slots()[task].error() {
            Some(error) => Failure::Task {
                workload,
                task,
                error,
            },
            None => Failure::Died {
                workload,
                task,
                status,
            },
        }
    }

    /// Reads the counters.
    pub fn counts(&self, into: &mut [u64]) {
        for (count, slot) in into.iter_mut().zip(self.slots()) {
            *count = slot.counter.get();
        }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, to which no reference is left.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), self.tasks * size_of::<Slot>()) };
    }
}

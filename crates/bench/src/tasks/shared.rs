//! Memory that the tasks share with the process that measures them.

use crate::harness::{Failure, Plan, interrupt};
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::ExitStatus;
use std::ptr::{self, NonNull};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::panicking;
use std::time::{Duration, Instant};
use workloads::{Counter, Error, Spend, Timed};

const READY: u32 = 1;
const FAILED: u32 = 2;

const ENDED: u32 = 1;
const PANICKED: u32 = 2;

/// One task's counter, and the task's fate on lines of its own.
#[repr(C, align(128))]
pub struct Slot {
    pub counter: Counter,
    state: AtomicU32,
    /// True if a task that is no process has come to its end, and how.
    end: AtomicU32,
    error: UnsafeCell<Option<Error>>,
}

// SAFETY: `error` is written once, by the slot's task, before its release store of
// FAILED, and read only behind an acquire load that saw FAILED.
unsafe impl Sync for Slot {}

impl Slot {
    /// Called by the task: it exists and is where it should be.
    pub fn ready(&self) {
        self.state.store(READY, Ordering::Release);
    }

    /// Called by the task, at most once: it gives up.
    pub fn fail(&self, error: Error) {
        // SAFETY: no thread reads before the store below.
        unsafe { *self.error.get() = Some(error) };
        // Pairs with the acquire load in `error`.
        self.state.store(FAILED, Ordering::Release);
    }

    /// Called by the task: it ends when the result is dropped, by a panic or without one.
    pub fn living(&self) -> impl Drop + '_ {
        struct Living<'a>(&'a Slot);
        impl Drop for Living<'_> {
            fn drop(&mut self) {
                let how = if panicking() { PANICKED } else { ENDED };
                // Release: pairs with the acquire in `has_ended`.
                self.0.end.store(how, Ordering::Release);
            }
        }
        Living(self)
    }

    /// Returns true if the task has ended.
    pub fn has_ended(&self) -> bool {
        self.end.load(Ordering::Acquire) != 0
    }

    /// Returns true if the task has given up or panicked.
    pub fn has_failed(&self) -> bool {
        self.end.load(Ordering::Acquire) == PANICKED || self.error().is_some()
    }

    /// Returns true if the task has come as far as `ready`.
    pub fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) != 0
    }

    /// The reason why the task gave up, if it did.
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
    /// One more than tasks: the last one's counter is the supply of the others'.
    slots: NonNull<Slot>,
    tasks: usize,
}

// SAFETY: it owns the mapping; `Slot` is Sync and has no thread affinity.
unsafe impl Send for Area {}
// SAFETY: only shared references to `Slot`s are handed out.
unsafe impl Sync for Area {}

impl Area {
    /// Slots for the tasks of `plan`, which spend delays by `spend`.
    pub fn new(plan: &Plan, spend: Spend) -> io::Result<Self> {
        let area = Self::map(plan.tasks, None)?;
        let supply = area.supply();
        // SAFETY: it lies in the same mapping, which forked children have at the same address.
        let counter = |task| unsafe { plan.counter(task, supply) };
        area.clear(plan.supply(), |task| counter(task).delayed_by(spend));
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
        // SAFETY: just opened, and known nowhere else.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(length(tasks) as u64)?;
        let file = OwnedFd::from(file);
        let area = Self::map(tasks, Some(&file))?;
        area.clear(Counter::new(), |_| Counter::new());
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
                length(tasks),
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

    /// The counter behind those of the tasks.
    fn supply(&self) -> NonNull<Counter> {
        // SAFETY: within the mapping, which has one slot more than tasks; no reference is made.
        unsafe { NonNull::new_unchecked(&raw mut (*self.slots.as_ptr().add(self.tasks)).counter) }
    }

    /// Each task has its `counter`.
    fn clear(&self, supply: Counter, counter: impl Fn(usize) -> Counter) {
        let counters = (0..self.tasks).map(counter).chain([supply]);
        for (task, counter) in counters.enumerate() {
            let slot = Slot {
                counter,
                state: AtomicU32::new(0),
                end: AtomicU32::new(0),
                error: UnsafeCell::new(None),
            };
            // SAFETY: within the mapping, which is page-aligned, and known
            // nowhere else yet.
            unsafe { self.slots.add(task).write(slot) };
        }
    }

    /// All slots, by task.
    pub fn slots(&self) -> &[Slot] {
        // SAFETY: `tasks` slots were written by `clear`, here or by the maker of the
        // file; the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.slots.as_ptr(), self.tasks) }
    }

    /// The failure of a task of `workload` that has ended: its own reason, or just the end, with
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

    /// Delays each task by `time` before each operation, and waits until that has begun.
    pub fn delay(&self, time: Duration) {
        for slot in self.slots() {
            slot.counter.delay(time.as_nanos() as u64);
        }
        interrupt::sleep(SETTLE.max(4 * time));
    }

    /// The operations of all tasks so far that began after a delay.
    pub fn timed(&self) -> Timed {
        self.slots().iter().map(|slot| slot.counter.timed()).sum()
    }

    /// Reads the counters.
    pub fn counts(&self, into: &mut [u64]) {
        for (count, slot) in into.iter_mut().zip(self.slots()) {
            *count = slot.counter.get();
        }
    }
}

/// The time, at least, in which tasks come to meet as often as a new delay lets them.
const SETTLE: Duration = Duration::from_millis(10);

/// Does nothing but `look` until a random time has passed, `nanoseconds` on average, whatever the
/// speed of the CPU; returns when that began and ended.
pub fn spend(nanoseconds: u64, look: impl Fn()) -> [u64; 2] {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let now = || FIRST.elapsed().as_nanos() as u64;
    let began = now();
    let chance = began.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let until = began + ((u128::from(chance) * 2 * u128::from(nanoseconds)) >> 32) as u64;
    loop {
        let time = now();
        if time >= until {
            return [began, time];
        }
        look();
    }
}

/// Bytes of an area.
fn length(tasks: usize) -> usize {
    (tasks + 1) * size_of::<Slot>()
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, to which no reference is left.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), length(self.tasks)) };
    }
}

//! Parking on a futex, the clock, and task-local words.

use crate::Hosted;
use core::sync::atomic::{AtomicU32, Ordering};
use machine::{Anchor, Clock, Cpus, Locals, Tasks};
use std::sync::LazyLock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A thread's permit. Never freed, so waking a thread that has ended is harmless.
struct Slot {
    /// [`EMPTY`], [`PERMIT`] or [`PARKED`].
    state: AtomicU32,
}

const EMPTY: u32 = 0;
const PERMIT: u32 = 1;
const PARKED: u32 = 2;

/// Names a thread for unparking.
#[derive(Clone, Copy)]
pub struct Task(&'static Slot);

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

/// Slots of threads that have ended, to be reused.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// The calling thread's slot; returned to [`FREE`] when the thread ends.
struct Owned(&'static Slot);

impl Owned {
    fn take() -> Self {
        let reused = FREE.lock().unwrap_or_else(|e| e.into_inner()).pop();
        Owned(reused.unwrap_or_else(|| {
            Box::leak(Box::new(Slot {
                state: AtomicU32::new(EMPTY),
            }))
        }))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(|e| e.into_inner()).push(self.0);
    }
}

thread_local! {
    static SLOT: Owned = Owned::take();
    static LOCALS: Locals = const { Locals::ZERO };
}

impl Tasks for Hosted {
    type Task = Task;

    fn current_task() -> Task {
        SLOT.with(|slot| Task(slot.0))
    }

    fn park() {
        assert_unpinned();
        let slot = SLOT.with(|slot| slot.0);
        // Acquire (here and below): pairs with the release in `unpark`.
        while slot
            .state
            .compare_exchange(PERMIT, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            // Only this thread leaves PERMIT, so the state is EMPTY or PARKED here.
            if slot
                .state
                .compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed)
                != Err(PERMIT)
            {
                futex_wait(&slot.state, PARKED);
            }
        }
    }

    fn unpark(task: Task) {
        // Release: pairs with the acquire in `park`.
        if task.0.state.swap(PERMIT, Ordering::Release) == PARKED {
            futex_wake_one(&task.0.state);
        }
    }

    fn yield_now() {
        assert_unpinned();
        std::thread::yield_now();
    }

    #[inline]
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        LOCALS.with(f)
    }

    fn anchor() -> &'static Anchor {
        static ANCHOR: Anchor = Anchor::new();
        &ANCHOR
    }
}

/// Panics if the task is about to sleep while it holds a pin.
#[inline(always)]
#[track_caller]
fn assert_unpinned() {
    assert!(Hosted::pins() == 0, "a task sleeps while it is pinned");
}

/// Sleeps while the word holds `expected`; may return early.
fn futex_wait(word: &AtomicU32, expected: u32) {
    let timeout = core::ptr::null::<libc::timespec>();
    // SAFETY: the word is valid for the call; the kernel only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            timeout,
        )
    };
}

/// Wakes one thread that sleeps on the word.
fn futex_wake_one(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key only.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            1,
        )
    };
}

impl Clock for Hosted {
    fn now() -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }

    fn sleep_until(time: u64) {
        assert_unpinned();
        loop {
            let rest = time.saturating_sub(Self::now());
            if rest == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(rest));
        }
    }
}

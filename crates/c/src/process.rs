//! The machine: this process, its threads as CPUs.
//!
//! A thread takes a place when it first needs one, and has it alone until it ends, so a pin needs
//! no work. Places are dense: a thread takes the lowest free one.

mod permit;
mod place;

pub(crate) use place::{CPUS, check_at_end};

use crate::errno;
use crate::words;
use core::marker::PhantomData;
use core::mem::transmute;
use machine::{Anchor, Clock, CpuId, CpuRange, Cpus, Locals, Pinned, Tasks};
use permit::Permit;
use place::mine;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The machine.
pub(crate) enum Process {}

machine::native_atomics!(Process);

/// Writes one line to standard error and aborts the process: an answer to misuse.
#[cold]
#[inline(never)]
pub(crate) fn abort(function: &str, why: &str) -> ! {
    let line = format!("{function}: {why}\n");
    // SAFETY: the line is valid for the call.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    std::process::abort()
}

/// Pauses before a waiter yields its time slice: there may be more threads than CPUs, and the
/// awaited one may not run.
const PAUSES_BEFORE_YIELD: u32 = 64;

/// The calling thread is its CPU, so a pin holds nothing.
pub(crate) struct Pin {
    cpu: CpuId,
    /// A pin belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

/// Makes the calling thread a CPU, which it was not so far, and returns it; `NONE` if there are too
/// many threads.
#[cold]
#[inline(never)]
fn first() -> CpuId {
    mine().cpu
}

impl Pinned for Pin {
    #[inline(always)]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

// SAFETY: a place belongs to one thread at a time, and ids of places differ.
unsafe impl Cpus for Process {
    type Pin = Pin;

    #[inline(always)]
    fn pin() -> Pin {
        // SAFETY: an id is an integer (`repr(transparent)`), and the word is `NONE` or one that
        // `mine` has stored.
        let cpu = unsafe { transmute::<usize, CpuId>(words::CPU.get()) };
        Pin {
            cpu: if cpu == CpuId::NONE { first() } else { cpu },
            not_send: PhantomData,
        }
    }

    fn pins() -> u32 {
        0
    }

    #[inline]
    fn begun(cpus: CpuRange) -> usize {
        place::begun().min(cpus.len())
    }

    #[inline]
    fn relax(round: u32) {
        if round < PAUSES_BEFORE_YIELD {
            core::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    #[inline]
    fn delay(pauses: u32) {
        for _ in 0..pauses {
            core::hint::spin_loop();
        }
    }
}

/// Names a thread: its place's permit, which is never freed.
#[derive(Clone, Copy)]
pub(crate) struct Task(&'static Permit);

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

impl Tasks for Process {
    type Task = Task;

    fn current_task() -> Task {
        Task(&mine().permit)
    }

    fn park() {
        mine().permit.wait();
    }

    fn unpark(task: Task) {
        task.0.give();
    }

    fn yield_now() {
        std::thread::yield_now();
    }

    #[inline]
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        f(mine().locals())
    }

    fn anchor() -> &'static Anchor {
        static ANCHOR: Anchor = Anchor::new();
        &ANCHOR
    }
}

impl Clock for Process {
    fn now() -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        let _errno = errno::keep();
        START.elapsed().as_nanos() as u64
    }

    fn sleep_until(time: u64) {
        let _errno = errno::keep();
        std::thread::sleep(Duration::from_nanos(time.saturating_sub(Self::now())));
    }
}

//! Threads as CPUs.
//!
//! A thread becomes a CPU by [`Hosted::attach`] and stays the only one until it ends, so a pin
//! needs no work: no other thread can run there, and a thread continues with another task of a
//! scheduler only where the running one says so, which is never while it holds a pin. With debug
//! assertions pins are counted, and a task that sleeps with one panics, as it would deadlock a
//! kernel.

use crate::{Hosted, words};
use core::marker::PhantomData;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use machine::{CpuId, Cpus, Execute, Job, Pinned, Topology};
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

/// True if pins are counted.
const COUNTS: bool = cfg!(debug_assertions);

/// Relaxations before a waiter yields its time slice.
///
/// CPUs here are threads, and there may be more of them than cores: the awaited one may not be
/// running. About 2 µs of pausing costs less than a switch.
const PAUSES_BEFORE_YIELD: u32 = 64;

/// The time that an ended thread may take to return its CPU, on a host with many more threads to
/// run than cores.
const EXIT_TIME: Duration = Duration::from_secs(5);

/// The CPU that the calling thread is.
#[inline(always)]
pub(crate) fn current() -> CpuId {
    // SAFETY: an id is an integer (`repr(transparent)`), and the word is `CpuId::NONE` or one
    // that `set_current` has stored.
    unsafe { transmute::<usize, CpuId>(words::CPU.get()) }
}

fn set_current(cpu: CpuId) {
    // SAFETY: an id is an integer, see `current`.
    words::CPU.set(unsafe { transmute::<CpuId, usize>(cpu) });
}

/// The calling thread's pin: the thread is its CPU, so it holds no resource.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its task.
    not_send: PhantomData<*mut ()>,
}

impl Pin {
    /// The pin with which a context begins, counted already.
    pub(crate) fn first() -> Self {
        Pin {
            cpu: current(),
            not_send: PhantomData,
        }
    }
}

impl Pinned for Pin {
    #[inline(always)]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pin {
    #[inline(always)]
    fn drop(&mut self) {
        if COUNTS {
            words::PINS.set(words::PINS.get() - 1);
        }
    }
}

// SAFETY: `Claims` lets one thread at a time be a CPU, ids of different machines differ, and a
// thread runs one task, or goes from one to the next where neither holds a pin (`safe_point`,
// `park`).
unsafe impl Cpus for Hosted {
    type Pin = Pin;

    #[inline(always)]
    fn pin() -> Pin {
        if COUNTS {
            words::PINS.set(words::PINS.get() + 1);
        }
        Pin::first()
    }

    #[inline(always)]
    fn pins() -> u32 {
        if COUNTS { words::PINS.get() as u32 } else { 0 }
    }

    fn numa_node() -> usize {
        let mut node = 0u32;
        if !cfg!(miri) {
            // SAFETY: the kernel writes the node's number to the variable; null stands for what is
            // not asked for.
            unsafe {
                libc::syscall(
                    libc::SYS_getcpu,
                    null_mut::<u32>(),
                    &mut node,
                    null_mut::<()>(),
                )
            };
        }
        node as usize
    }

    #[inline]
    fn relax(round: u32) {
        if round < PAUSES_BEFORE_YIELD {
            core::hint::spin_loop();
        } else {
            thread::yield_now();
        }
    }

    #[inline]
    fn delay(pauses: u32) {
        for _ in 0..pauses {
            core::hint::spin_loop();
        }
    }
}

/// True for each CPU that a thread has taken.
pub(crate) struct Claims(Box<[AtomicBool]>);

impl Claims {
    pub(crate) fn new(cpus: usize) -> Self {
        Claims((0..cpus).map(|_| AtomicBool::new(false)).collect())
    }

    /// Takes the CPU as soon as no thread has it. Returns false if a thread keeps it for `limit`.
    fn claim_within(&self, index: usize, limit: Duration) -> bool {
        let begin = Instant::now();
        // Acquire: pairs with the release in `Claim::drop`, so that the next thread to be this CPU
        // sees the per-CPU data as the last one left it.
        while self.0[index].swap(true, Ordering::Acquire) {
            if begin.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_micros(100));
        }
        true
    }
}

/// Returns the thread's CPU when the thread ends.
struct Claim {
    machine: Hosted,
    cpu: CpuId,
}

thread_local! {
    static CLAIM: RefCell<Option<Claim>> = const { RefCell::new(None) };
}

impl Hosted {
    /// Makes the calling thread this machine's `index`-th CPU for the rest of its life. (There is
    /// no detaching: a pin taken before must not outlive it.)
    ///
    /// A thread returns its CPU in its very last step, which may be after a `std::thread::scope`
    /// has seen it end. So this waits a few seconds for a CPU that another thread still has.
    ///
    /// # Panics
    /// If there is no such CPU, another thread keeps it, or the calling thread is a CPU already.
    pub fn attach(&self, index: usize) {
        assert!(current() == CpuId::NONE, "this thread is a CPU already");
        let cpu = self.inner.cpus.cpu(index);
        let claimed = self.inner.claims.claim_within(index, EXIT_TIME);
        assert!(claimed, "CPU {index} is another thread's");
        set_current(cpu);
        let machine = self.clone();
        CLAIM.set(Some(Claim { machine, cpu }));
    }

    /// Runs `job` on CPU `index`, in a thread of its own, and returns its result.
    ///
    /// # Panics
    /// If there is no such CPU, another thread keeps it, or `job` panics.
    pub fn on_cpu<R: Send>(&self, index: usize, job: impl FnOnce() -> R + Send) -> R {
        let (mut job, mut result) = (Some(job), None);
        self.run_on(index, &mut || result = job.take().map(|job| job()));
        result.expect("the job has ended")
    }

    /// Runs `job`, whose type is erased, on CPU `index`.
    fn run_on(&self, index: usize, job: &mut (dyn FnMut() + Send)) {
        let run = || {
            self.attach(index);
            job();
        };
        thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| resume_unwind(panic));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        set_current(CpuId::NONE);
        // Release: pairs with the acquire in `Claims::claim_within`, for the per-CPU data.
        self.machine.inner.claims.0[self.cpu.index()].store(false, Ordering::Release);
    }
}

impl Execute for Hosted {
    /// With a scheduler ([`Hosted::schedule`]), jobs are its tasks, and there may be more of them
    /// than CPUs.
    fn execute(&self, jobs: Vec<Job>) {
        let run = |(cpu, job): (usize, Option<Job>)| {
            let machine = self.clone();
            thread::spawn(move || match job {
                Some(job) => {
                    machine.attach(cpu);
                    job();
                }
                None => machine.work(cpu),
            })
        };
        let jobs: Vec<_> = if self.is_scheduled() {
            self.deal(jobs);
            (0..self.cpus().len()).map(|_| None).collect()
        } else {
            jobs.into_iter().map(Some).collect()
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(run).collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        if let Some(panic) = results.into_iter().find_map(Result::err) {
            resume_unwind(panic);
        }
    }
}

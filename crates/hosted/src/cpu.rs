//! Threads as CPUs.
//!
//! A thread becomes a CPU by [`Hosted::attach`] and has it alone until it ends, so
//! a pin needs no work: nobody else can run there.

use crate::Hosted;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};
use machine::{CpuId, Cpus, Pinned};
use std::cell::{Cell, RefCell};

thread_local! {
    /// The CPU this thread is.
    static CURRENT: Cell<CpuId> = const { Cell::new(CpuId::NONE) };
}

/// Relaxations before a waiter gives its time slice away.
///
/// CPUs here are threads, and there may be more of them than cores: the one
/// waited for may not be running. About 2 µs of pausing costs less than a switch.
const PAUSES_BEFORE_YIELD: u32 = 64;

/// The calling thread's pin: the thread is its CPU, so it holds no resource.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

impl Pinned for Pin {
    #[inline(always)]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

// SAFETY: `Claims` lets one thread at a time be a CPU, ids of different machines
// differ, and a thread runs one task.
unsafe impl Cpus for Hosted {
    type Pin = Pin;

    #[inline(always)]
    fn pin() -> Pin {
        Pin {
            cpu: CURRENT.get(),
            not_send: PhantomData,
        }
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

/// Which CPUs are taken by a thread.
pub(crate) struct Claims(Box<[AtomicBool]>);

impl Claims {
    pub(crate) fn new(cpus: usize) -> Self {
        Claims((0..cpus).map(|_| AtomicBool::new(false)).collect())
    }
}

/// Gives the thread's CPU back when the thread ends.
struct Claim {
    machine: Hosted,
    cpu: CpuId,
}

thread_local! {
    static CLAIM: RefCell<Option<Claim>> = const { RefCell::new(None) };
}

impl Hosted {
    /// Makes the calling thread this machine's `index`-th CPU for the rest of its
    /// life. (There is no detaching: a pin taken before must not outlive it.)
    ///
    /// # Panics
    /// If there is no such CPU, a thread is it already, or the calling thread is
    /// a CPU already.
    pub fn attach(&self, index: usize) {
        assert!(CURRENT.get() == CpuId::NONE, "this thread is a CPU already");
        let cpu = self.inner.cpus.cpu(index);
        // Acquire: pairs with the release in `drop`, so that the next thread to be
        // this CPU sees the per-CPU data as the last one left it.
        let taken = self.inner.claims.0[index].swap(true, Ordering::Acquire);
        assert!(!taken, "CPU {index} is another thread's");
        CURRENT.set(cpu);
        let machine = self.clone();
        CLAIM.set(Some(Claim { machine, cpu }));
    }

    /// Runs `job` on CPU `index`, in a thread of its own, and returns its result.
    ///
    /// # Panics
    /// As [`Hosted::attach`], and if `job` does.
    pub fn on_cpu<R: Send>(&self, index: usize, job: impl FnOnce() -> R + Send) -> R {
        let (mut job, mut result) = (Some(job), None);
        self.run_on(index, &mut || result = job.take().map(|job| job()));
        result.expect("the job has ended")
    }

    /// As [`Hosted::on_cpu`], for jobs of all types.
    fn run_on(&self, index: usize, job: &mut (dyn FnMut() + Send)) {
        let run = || {
            self.attach(index);
            job();
        };
        std::thread::scope(|scope| scope.spawn(run).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CURRENT.set(CpuId::NONE);
        // Release: see `attach`.
        self.machine.inner.claims.0[self.cpu.index()].store(false, Ordering::Release);
    }
}

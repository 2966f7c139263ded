//! A deterministic many-core machine in virtual time.
//!
//! [`Sim`] keeps the contract of `machine`: locks, epochs and the VM run on it unchanged. Its CPUs
//! are coroutines of one host thread, each with a clock; a model of cache coherence sets the cost
//! of every access to shared memory, on a machine described by a [`profile::MachineProfile`]. The
//! same random seed gives the same run, bit for bit.
//!
//! `docs/simulator/` describes what is modelled and what is not, and how far to trust the results.
#![warn(missing_docs)]

mod arena;
mod atomic;
mod coherence;
mod disk;
mod engine;
mod label;
mod memory;
pub mod profile;
mod report;
mod run;
mod task;
mod translation;

pub use arena::MOST_MACHINES;
pub use arena::global::Allocator;
pub use atomic::{Modelled, SimCell};
pub use disk::Disk;
pub use engine::cpu::Times;
pub use engine::preempt::Preempt;
pub use engine::sampler::Spent;
pub use engine::watch::Delays;
pub use engine::{Counts, Off};
pub use report::{Access, HeapImage, LineUse, Sample, SiteName};
pub use run::{
    Options, Progress, begin_refund, compute, dice, end_refund, enter, forfeit, free_stores, leave,
    off_cpu, spawn, stand_by, system_call,
};
pub use task::{Pin, Task};

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use engine::{Engine, Running};
use machine::{CpuRange, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The machine. Cheap to clone: all clones are one machine.
#[derive(Clone)]
pub struct Sim {
    inner: Arc<Inner>,
}

struct Inner {
    range: CpuRange,
    sockets: usize,
    frames: NonNull<u8>,
    frame_count: usize,
    /// True while a VM has the frames.
    owned: AtomicBool,
    /// True while a thread runs the machine or uses its engine, and forever once it is scrapped.
    busy: AtomicBool,
    engine: UnsafeCell<ManuallyDrop<Engine>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !*self.busy.get_mut() {
            // SAFETY: the machine is not scrapped, so its engine was not dropped before.
            unsafe { ManuallyDrop::drop(self.engine.get_mut()) };
        }
    }
}

// SAFETY: the engine is used under `busy`, or by code on its CPUs, which run on the thread that
// holds `busy`.
unsafe impl Send for Inner {}
// SAFETY: the engine is used under `busy`, or by code on its CPUs, on the thread that holds `busy`;
// the rest does not change.
unsafe impl Sync for Inner {}

impl Topology for Sim {
    fn cpus(&self) -> CpuRange {
        self.inner.range
    }

    fn numa_nodes(&self) -> usize {
        self.inner.sockets
    }
}

impl Sim {
    fn engine(&self) -> *mut Engine {
        self.inner.engine.get().cast()
    }

    /// Frees the machine's memory although jobs have not ended or objects that live in it have not
    /// been dropped: for runs that have failed.
    ///
    /// # Safety
    /// Objects allocated on the machine's CPUs are not touched again, not even dropped. (The
    /// machine itself refuses further use.)
    pub unsafe fn scrap(&self) {
        core::mem::forget(self.claim());
        // SAFETY: `busy` stays claimed, so this happens once and no thread uses the engine
        // afterwards.
        unsafe { ManuallyDrop::drop(&mut *self.inner.engine.get()) };
    }

    /// The calling CPU, which must be one of this machine's.
    fn running(&self) -> Running {
        let running = Running::current().filter(|running| running.is_of(self.engine()));
        running.expect("the caller runs on a CPU of this machine")
    }

    /// Borrows the engine, on one of its CPUs or outside, for `f`, which does not suspend the CPU.
    fn with_engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        match Running::current().filter(|running| running.is_of(self.engine())) {
            Some(running) => running.with(f),
            None => {
                let _busy = self.claim();
                // SAFETY: this thread has claimed `busy`, so no other runs the machine.
                f(unsafe { &mut *self.engine() })
            }
        }
    }

    fn claim(&self) -> Claim<'_> {
        // Acquire and release: the claimant sees what earlier ones did.
        let taken = self.inner.busy.swap(true, Ordering::Acquire);
        assert!(
            !taken,
            "a simulated machine is run by one thread at a time, and not after it was scrapped"
        );
        Claim(&self.inner.busy)
    }
}

/// Exclusive use of the machine, until this is dropped.
struct Claim<'a>(&'a AtomicBool);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

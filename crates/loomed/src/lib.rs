//! The machine contract on loom: every interleaving, and every value that a load may see under the
//! C11 model, for a few threads.
//!
//! Use it inside [`loom::model()`]. docs/reference/checks.md lists what loom does not model:
//! `SeqCst` accesses count as acquire and release (fences are exact, which is why the contract has
//! [`machine::Atomic::publish`]), and spin loops are assumed to be fair.
#![warn(missing_docs)]

mod atomic;
mod cpu;
pub mod flaw;
mod memory;
mod mmu;
mod task;

pub use loom;
pub use task::with_late_unparks;

use atomic::U64;
use core::sync::atomic::AtomicBool;
use machine::{CpuRange, Topology};
use std::sync::Arc;

/// Words of a CPU's stack: loom's threads have 4096, too few for the VM in a build without
/// optimization.
const STACK: usize = 0x4000;

/// Runs `body`, a model's, on a thread with a stack as large as a CPU's: [`machine::Execute`] runs
/// the first job on the calling thread, and the model's own thread has a small stack.
pub fn with_stack(body: impl FnOnce() + Send + 'static) {
    let thread = loom::thread::Builder::new().stack_size(STACK);
    let done = thread.spawn(body).expect("a thread").join();
    done.expect("a panic ends the model");
}

/// The machine: loom threads as CPUs.
#[derive(Clone)]
pub struct Loomed {
    cpus: CpuRange,
    inner: Arc<Inner>,
}

struct Inner {
    frames: memory::Frames,
    /// True while a VM has the frames.
    owned: AtomicBool,
    /// One per CPU; none on a machine without memory.
    mmus: Box<[mmu::CpuMmu]>,
}

impl Loomed {
    /// A machine of `cpus` CPUs without memory; loom allows at most 5 threads.
    pub fn new(cpus: usize) -> Self {
        Self::build(cpus, 0)
    }

    /// A machine of `cpus` CPUs and `frames` frames, all zero; a model may touch 96 words of them,
    /// and 1,120 if they are enough for a superpage. Create it in the model, before its threads.
    pub fn with_memory(cpus: usize, frames: usize) -> Self {
        Self::build(cpus, frames)
    }

    fn build(cpus: usize, frames: usize) -> Self {
        let mmus = if frames == 0 { 0 } else { cpus };
        Loomed {
            cpus: CpuRange::claim(cpus),
            inner: Arc::new(Inner {
                frames: memory::Frames::new(frames),
                owned: AtomicBool::new(false),
                mmus: (0..mmus).map(|_| mmu::CpuMmu::new()).collect(),
            }),
        }
    }
}

impl Topology for Loomed {
    fn cpus(&self) -> CpuRange {
        self.cpus
    }
}

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

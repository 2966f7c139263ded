//! The machine contract on loom: every interleaving, and every value a load may
//! see under the C11 model, for a few threads.
//!
//! Use it inside [`loom::model()`]. What loom does not model is listed in the
//! project's CAVEATS.md: `SeqCst` accesses count as acquire and release
//! (fences are exact, which is why the contract has
//! [`machine::Atomic::publish`]), and fairness is assumed of spin loops.

mod atomic;
mod cpu;
mod memory;
mod mmu;
mod task;

pub use loom;

use atomic::U64;
use machine::{CpuRange, Topology};
use std::sync::Arc;

/// The machine: loom threads as CPUs.
#[derive(Clone)]
pub struct Checked {
    cpus: CpuRange,
    inner: Arc<Inner>,
}

struct Inner {
    frames: memory::Frames,
    /// One a CPU; none on a machine without memory.
    mmus: Box<[mmu::CpuMmu]>,
}

impl Checked {
    /// A machine of `cpus` CPUs without memory; loom allows at most 5 threads.
    pub fn new(cpus: usize) -> Self {
        Self::build(cpus, 0)
    }

    /// A machine of `cpus` CPUs and `frames` frames, all zero, of which a model may
    /// touch 96 words. To be made in the model, before its threads.
    pub fn with_memory(cpus: usize, frames: usize) -> Self {
        Self::build(cpus, frames)
    }

    fn build(cpus: usize, frames: usize) -> Self {
        let mmus = if frames == 0 { 0 } else { cpus };
        Checked {
            cpus: CpuRange::claim(cpus),
            inner: Arc::new(Inner {
                frames: memory::Frames::new(frames),
                mmus: (0..mmus).map(|_| mmu::CpuMmu::new()).collect(),
            }),
        }
    }
}

impl Topology for Checked {
    fn cpus(&self) -> CpuRange {
        self.cpus
    }
}

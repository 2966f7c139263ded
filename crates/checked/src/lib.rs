//! The machine contract on loom: every interleaving, and every value a load may
//! see under the C11 model, for a few threads.
//!
//! Use it inside [`loom::model`]. What loom does not model is listed in the
//! project's CAVEATS.md: `SeqCst` accesses count as acquire and release
//! (fences are exact, which is why the contract has
//! [`machine::Atomic::publish`]), and fairness is assumed of spin loops.

mod atomic;
mod cpu;
mod task;

pub use loom;

use machine::{CpuRange, Topology};

/// The machine: loom threads as CPUs.
#[derive(Clone)]
pub struct Checked {
    cpus: CpuRange,
}

impl Checked {
    /// A machine of `cpus` CPUs; loom allows at most 5 threads.
    pub fn new(cpus: usize) -> Self {
        Checked {
            cpus: CpuRange::claim(cpus),
        }
    }
}

impl Topology for Checked {
    fn cpus(&self) -> CpuRange {
        self.cpus
    }
}

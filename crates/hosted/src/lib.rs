//! A machine made of this process: threads as CPUs, an arena as physical
//! memory, modelled per-CPU TLBs.
//!
//! Atomics and cells are the `core` types, so code written against the contract
//! compiles to what hand-written code compiles to.

mod atomic;
mod cpu;
mod execute;
mod task;

pub use cpu::Pin;
pub use task::Task;

use machine::{CpuRange, Topology};
use std::sync::Arc;

/// The machine. Cheap to clone: all clones are one machine.
#[derive(Clone)]
pub struct Hosted {
    inner: Arc<Inner>,
}

struct Inner {
    cpus: CpuRange,
    claims: cpu::Claims,
}

impl Hosted {
    /// A machine of `cpus` CPUs without memory, for locks and epochs.
    ///
    /// # Panics
    /// If `cpus` is 0 or above [`machine::MAX_CPUS`].
    pub fn new(cpus: usize) -> Self {
        Hosted {
            inner: Arc::new(Inner {
                cpus: CpuRange::claim(cpus),
                claims: cpu::Claims::new(cpus),
            }),
        }
    }
}

impl Topology for Hosted {
    fn cpus(&self) -> CpuRange {
        self.inner.cpus
    }
}

//! A machine made of this process: threads as CPUs, an arena as physical
//! memory, modelled per-CPU TLBs.
//!
//! Atomics and cells are the `core` types, so code written against the contract
//! compiles to what hand-written code compiles to.

mod arena;
mod atomic;
mod cpu;
mod execute;
mod mmu;
mod pager;
mod probe;
pub mod shootdown;
mod stats;
mod task;

pub use cpu::Pin;
pub use pager::FilePager;
pub use probe::{Probe, ProbeHook};
pub use stats::Stats;
pub use task::Task;

use machine::{CpuRange, MAX_CPUS, Topology};
use std::io;
use std::sync::Arc;

/// The machine. Cheap to clone: all clones are one machine.
#[derive(Clone)]
pub struct Hosted {
    inner: Arc<Inner>,
}

struct Inner {
    cpus: CpuRange,
    claims: cpu::Claims,
    arena: arena::Arena,
    /// One a CPU; none on a machine without memory.
    mmus: Box<[mmu::CpuMmu]>,
    hook: probe::Hook,
}

impl Hosted {
    /// A machine of `cpus` CPUs without memory, for locks and epochs.
    ///
    /// # Panics
    /// If `cpus` is 0 or above [`machine::MAX_CPUS`].
    pub fn new(cpus: usize) -> Self {
        Self::build(cpus, arena::Arena::EMPTY, Box::default())
    }

    /// A machine of `cpus` CPUs and `bytes` of memory, rounded up to whole frames.
    ///
    /// The memory is zero and costs nothing until it is touched. Each CPU has a TLB
    /// of 1,536 entries, 12-way (24 KiB of the host's memory).
    ///
    /// # Errors
    /// If `cpus` is 0 or above [`machine::MAX_CPUS`], if frames would outnumber
    /// `u32`, or if the host refuses the address space.
    pub fn with_memory(cpus: usize, bytes: usize) -> io::Result<Self> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            let text = format!("a machine has 1 to {MAX_CPUS} CPUs, not {cpus}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let arena = arena::Arena::new(bytes)?;
        let mmus = (0..cpus).map(|_| mmu::CpuMmu::new()).collect();
        Ok(Self::build(cpus, arena, mmus))
    }

    fn build(cpus: usize, arena: arena::Arena, mmus: Box<[mmu::CpuMmu]>) -> Self {
        Hosted {
            inner: Arc::new(Inner {
                cpus: CpuRange::claim(cpus),
                claims: cpu::Claims::new(cpus),
                arena,
                mmus,
                hook: probe::Hook::default(),
            }),
        }
    }
}

impl Topology for Hosted {
    fn cpus(&self) -> CpuRange {
        self.inner.cpus
    }
}

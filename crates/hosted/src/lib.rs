//! A machine made of this process: threads as CPUs, an arena as physical memory, modelled per-CPU
//! TLBs. A CPU runs one task, or those that a scheduler gives it ([`Hosted::schedule`]).
//!
//! Atomics and cells are the `core` types, so code written against the contract compiles to the
//! same instructions as hand-written code.
#![warn(missing_docs)]

mod arena;
mod context;
mod cpu;
mod crew;
mod interrupt;
mod mmu;
mod options;
mod pager;
mod permit;
mod ping;
mod probe;
pub mod shootdown;
mod stacks;
mod stats;
mod task;
mod words;

pub use context::Off;
pub use cpu::Pin;
pub use crew::{off_cpu, spawn, stand_by};
pub use options::Options;
pub use pager::FilePager;
pub use probe::{Probe, ProbeHook};
pub use stats::Stats;
pub use task::Task;

use core::ops::Range;
use core::sync::atomic::AtomicBool;
use machine::soft::Oracle;
use machine::{CpuRange, Frame, Topology};
use std::sync::{Arc, OnceLock};

/// The machine. Cheap to clone: all clones are one machine.
#[derive(Clone)]
pub struct Hosted {
    inner: Arc<Inner>,
}

struct Inner {
    cpus: CpuRange,
    claims: cpu::Claims,
    arena: arena::Arena,
    /// The CPUs' MMUs; none on a machine without memory.
    mmus: Box<[mmu::CpuMmu]>,
    /// The frames that are handed over, ascending.
    usable: Box<[Range<u32>]>,
    /// True while a VM has the frames.
    owned: AtomicBool,
    /// The frames' owners, if the machine watches them.
    oracle: Option<Oracle>,
    /// The number of tags.
    asids: usize,
    /// The root that has the kernel's entries, if there are any.
    kernel: Option<Frame>,
    hook: probe::Hook,
    /// The needs of a scheduler, if there is one.
    crew: OnceLock<crew::Crew>,
}

impl Hosted {
    /// A machine of `cpus` CPUs without memory, for locks and epochs.
    ///
    /// # Panics
    /// If `cpus` is 0 or above [`machine::MAX_CPUS`].
    pub fn new(cpus: usize) -> Self {
        let cpus = CpuRange::claim(cpus);
        Self::of(Self::inner(cpus, arena::Arena::EMPTY, Box::default()))
    }

    fn of(inner: Inner) -> Self {
        ping::choose();
        Hosted {
            inner: Arc::new(inner),
        }
    }

    /// The parts of a machine that hands over no memory.
    fn inner(cpus: CpuRange, arena: arena::Arena, mmus: Box<[mmu::CpuMmu]>) -> Inner {
        Inner {
            claims: cpu::Claims::new(cpus.len()),
            cpus,
            arena,
            mmus,
            usable: Box::default(),
            owned: AtomicBool::new(false),
            oracle: None,
            asids: 1,
            kernel: None,
            hook: probe::Hook::default(),
            crew: OnceLock::new(),
        }
    }
}

impl Topology for Hosted {
    fn cpus(&self) -> CpuRange {
        self.inner.cpus
    }
}

machine::native_atomics!(Hosted, {
    #[inline(always)]
    fn light_fence() {
        ping::light_fence();
    }

    fn heavy_fence() {
        ping::heavy_fence();
    }
});

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

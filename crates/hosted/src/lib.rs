//! A machine made of this process: threads as CPUs, an arena as physical memory, modelled per-CPU
//! TLBs.
//!
//! Atomics and cells are the `core` types, so code written against the contract compiles to the
//! same instructions as hand-written code.

mod arena;
mod cpu;
mod mmu;
mod options;
mod pager;
mod probe;
pub mod shootdown;
mod stats;
mod task;

pub use cpu::Pin;
pub use options::Options;
pub use pager::FilePager;
pub use probe::{Probe, ProbeHook};
pub use stats::Stats;
pub use task::Task;

use core::ops::Range;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use machine::soft::Oracle;
use machine::{Atomics, CpuRange, Frame, NativeCell, NativePair, Topology};
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
    /// One per CPU; none on a machine without memory.
    mmus: Box<[mmu::CpuMmu]>,
    /// The frames that are handed over, ascending.
    usable: Box<[Range<u32>]>,
    /// The frames' owners, if the machine watches them.
    oracle: Option<Oracle>,
    /// How many tags there are.
    asids: usize,
    /// The root that has the kernel's entries, if there are any.
    kernel: Option<Frame>,
    hook: probe::Hook,
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
            oracle: None,
            asids: 1,
            kernel: None,
            hook: probe::Hook::default(),
        }
    }
}

impl Topology for Hosted {
    fn cpus(&self) -> CpuRange {
        self.inner.cpus
    }
}

impl Atomics for Hosted {
    type AtomicU8 = AtomicU8;
    type AtomicU16 = AtomicU16;
    type AtomicU32 = AtomicU32;
    type AtomicU64 = AtomicU64;
    type AtomicUsize = AtomicUsize;
    type AtomicPtr = AtomicPtr<()>;
    type AtomicPair = NativePair;
    type Cell<T: Send> = NativeCell<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }
}

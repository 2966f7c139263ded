//! The options of a VM.

use super::Overcommit;
use crate::error::Error;
use crate::flags::Superpages;
use crate::swap::SwapSpace;
use crate::system::{ForkTables, FramePools, ObjectPages, Part, System};
use alloc::boxed::Box;
use machine::CpuRange;

/// Called when no frame is left and none can be reclaimed. Returns true if the operation is worth
/// another try, since it has ended a process, for example. Called with no lock held.
pub type OutOfMemory = Box<dyn Fn() -> bool + Send + Sync>;

/// Returns true if the calling task is to end its operation soon, since it has a signal to handle,
/// for example. Called with no lock held.
pub type Interrupted = Box<dyn Fn() -> bool + Send + Sync>;

/// The options of a VM.
pub struct Options<S: System> {
    /// The options of the gate.
    pub gate: <S::Gate as Part<S::Machine>>::Config,
    /// The options of the delayed invalidation.
    pub invalidation: <S::Invalidation as Part<S::Machine>>::Config,
    /// The options of the account of swap space.
    pub swap: <S::Swap as Part<S::Machine>>::Config,
    /// The options of the queues of pages.
    pub queues: <S::Queues as Part<S::Machine>>::Config,
    /// The options of the locks of PV lists.
    pub pv_locks: <S::PvLocks as Part<S::Machine>>::Config,
    /// The options of the chunks of PV entries; `None` for entries in tables.
    pub pv_chunks: Option<<S::PvChunks as Part<S::Machine>>::Config>,
    /// The number of pages of swap space that may be reserved; by default twice the frames.
    pub swap_pages: Option<u64>,
    /// The swap space for pages when memory is short; without it, private memory stays. From now
    /// on it is the VM's alone.
    pub swap_space: Option<SwapSpace<S::Machine>>,
    /// Called when no memory is left.
    pub out_of_memory: Option<OutOfMemory>,
    /// Asked every 2 MiB by operations that page in all of a range.
    pub interrupted: Option<Interrupted>,
    /// The policy for requests beyond `swap_pages`.
    pub overcommit: Overcommit,
    /// The private anonymous memory that gets superpages.
    pub superpages: Superpages,
    /// The pools of free frames.
    pub frame_pools: FramePools,
    /// How a fork treats leaf tables; systems whose PV entries are in chunks always copy.
    pub fork_tables: ForkTables,
    /// How the VM finds the mappings of an object's page; systems whose PV entries are in chunks
    /// list them.
    pub object_pages: ObjectPages,
    /// The most pages of an object that one read fault maps ([`crate::Space::fault`]): a power of
    /// two, 512 at most.
    pub fault_around: usize,
}

/// The most pages that a read fault of an object maps by default, as on Linux: 64 KiB.
pub const FAULT_AROUND: usize = 16;

impl<S: System> Default for Options<S> {
    fn default() -> Self {
        Options {
            gate: Default::default(),
            invalidation: Default::default(),
            swap: Default::default(),
            queues: Default::default(),
            pv_locks: Default::default(),
            pv_chunks: None,
            swap_pages: None,
            swap_space: None,
            out_of_memory: None,
            interrupted: None,
            overcommit: Overcommit::default(),
            superpages: Superpages::default(),
            frame_pools: FramePools::default(),
            fork_tables: ForkTables::default(),
            object_pages: ObjectPages::default(),
            fault_around: FAULT_AROUND,
        }
    }
}

/// The most pages that a read fault of an object may map: those of a slot.
const MOST_AROUND: usize = 512;

impl<S: System> Options<S> {
    /// Checks the options for a VM of the machine with these CPUs.
    pub(super) fn check(&self, cpus: CpuRange) -> Result<(), Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        if !self.fault_around.is_power_of_two() || self.fault_around > MOST_AROUND {
            return invalid("a fault maps a power of two of pages, 512 at most");
        }
        if self.swap_space.as_ref().is_some_and(|it| it.cpus() != cpus) {
            return invalid("the swap space is another machine's");
        }
        Ok(())
    }
}

//! The differences between operating systems' designs, as traits.

mod pv;
mod queues;
mod regions;
mod seldom;

pub use pv::{PvByteHeld, PvBytes, PvChunks, PvInTables, PvLocking, Victim};
pub use queues::{NoQueues, PageQueues, Purpose};
pub use regions::{Mapping, NoRegions, Regions};
pub use seldom::Seldom;

use crate::error::Error;
use machine::{CpuRange, Frame, Machine, Platform};

/// How removal by the reverse map learns that no TLB keeps a page it finds
/// unmapped (*delayed invalidation* in FreeBSD's pmap).
///
/// A CPU that takes mappings away does it inside a *block*: it clears the entry and
/// takes the PV entry off the page's list under the page's PV lock, releases that
/// lock, and flushes TLBs before the block ends. In between, the page's PV list may
/// be empty while another CPU still writes the page through its TLB. A removal that finds
/// the list empty calls [`Invalidation::wait`]; when it returns, every block that
/// had noted the page before the call has ended.
///
/// # Safety
/// `wait` keeps that promise: the VM frees and launders frames on the strength of it.
pub unsafe trait Invalidation<M: Machine>: Send + Sync + 'static {
    /// An open block; ends when dropped.
    type Block<'a>;
    /// Held while a mapping is made; ends when dropped.
    type Enter<'a>;
    /// Held while mappings are removed by the reverse map; ends when dropped.
    type Reverse<'a>;
    /// A page's data of this policy.
    type Page: Send + Sync;
    /// The options of the policy, fixed when it is made; `()` for most.
    type Config: Default + Clone + Send;

    /// The policy's state for a machine whose frames have numbers below `frames`.
    ///
    /// # Errors
    /// If the kernel's heap has no room for it; so for every part of a policy.
    fn new(config: &Self::Config, cpus: CpuRange, frames: usize) -> Result<Self, Error>
    where
        Self: Sized;

    /// The state of a page that no block has noted.
    fn new_page() -> Self::Page;

    /// Returns true if a task may sleep in a block; never changes. If so, a block is opened around
    /// each removal from a pmap that has any page, as FreeBSD does, before any lock of a slot is
    /// taken. If not, it is opened under the slots' locks and the first page's PV lock, `begin`
    /// takes no lock, and the block ends with the flush or before anything that may sleep.
    fn may_sleep(&self) -> bool;

    /// Returns true if [`Invalidation::enter`] does nothing, no task may sleep in a block, and a
    /// page that no task can look for any more need not be noted when its mapping goes; never
    /// changes. Where all policies are silent, the first touch of private memory and the end of a
    /// page with one mapping and no holder take short paths.
    #[inline(always)]
    fn is_silent(&self) -> bool {
        false
    }

    /// Opens a block; at most one a task. See [`Invalidation::may_sleep`] for when.
    fn begin(&self) -> Self::Block<'_>;

    /// A mapping of `page` (frame `frame`) goes in this block. Under the page's PV lock.
    fn note(&self, block: &Self::Block<'_>, frame: Frame, page: &Self::Page);

    /// Before a lock of a slot, or of the pmap, is taken to make a mapping.
    fn enter(&self) -> Self::Enter<'_>;

    /// Before the PV lock of a page is taken to remove all its mappings.
    fn reverse(&self) -> Self::Reverse<'_>;

    /// Waits until each block that has noted `page` and is still open has ended. The
    /// caller holds no PV lock, no slot, no pmap lock and no block. It has held `reverse` since
    /// before it found the page's PV list empty.
    fn wait(&self, reverse: &Self::Reverse<'_>, frame: Frame, page: &Self::Page);

    /// Labels its memory ([`machine::Atomics::label`]); `self` stays where it is from now on.
    fn label(&self) {}
}

/// Accounting of the swap space that private writable mappings may come to need.
///
/// The limit is exact: the sum of successful reservations minus releases is never
/// above it, and a reservation that fits beside all others is not refused.
pub trait Reservation<M: Machine>: Send + Sync + 'static {
    /// The options of the account, fixed when it is made; `()` for most.
    type Config: Default + Clone + Send;

    /// An account of `limit` pages.
    fn new(config: &Self::Config, cpus: CpuRange, limit: u64) -> Result<Self, Error>
    where
        Self: Sized;

    /// Takes `pages` from the account, or nothing if they are not there.
    fn reserve(&self, pages: u64) -> bool;

    /// Gives `pages` back, perhaps on another CPU, perhaps in parts.
    fn release(&self, pages: u64);

    /// Pages reserved now; exact while no task reserves or releases.
    fn reserved(&self) -> u64;

    /// Labels its memory; `self` stays where it is from now on.
    fn label(&self) {}
}

/// The locks of an operation beside the slots of its range: none, or those of the systems
/// of the field.
///
/// Every guard ends when dropped. Taken in the order of the methods, before any lock of a
/// slot.
pub trait MapLocking<M: Machine>: Send + Sync + 'static {
    /// Held by a fault or a `discard`.
    type Read<'a>;
    /// Held while mappings change.
    type Write<'a>;
    /// Held while pages come, go or change their rights.
    type Pmap<'a>;
    /// The options of the policy, fixed when the VM is made; `()` for most.
    type Config: Default + Clone + Send + Sync;

    /// The locks of a space.
    fn new(config: &Self::Config) -> Self;

    /// Returns true if there are none; see [`Invalidation::is_silent`].
    #[inline(always)]
    fn is_silent(_config: &Self::Config) -> bool {
        false
    }

    /// Begins an operation that leaves the regions as they are.
    fn read(&self) -> Self::Read<'_>;

    /// Begins an operation that changes them.
    fn write(&self) -> Self::Write<'_>;

    /// Returns true if an operation that removes regions removes them from the records first, and
    /// then takes their pages away beside operations that leave the regions as they are. Then
    /// [`Regions::unmap`] is called with the range's slots locked, so it may wait for no lock below
    /// theirs.
    #[inline]
    fn downgrades(&self) -> bool {
        false
    }

    /// The regions have been changed: from now on the operation leaves them as they are.
    #[inline]
    fn downgrade(&self, _write: &mut Self::Write<'_>) {}

    /// Begins a change of the page tables.
    fn pmap(&self) -> Self::Pmap<'_>;

    /// Begins a change of the page tables, if that needs no waiting.
    fn try_pmap(&self) -> Option<Self::Pmap<'_>>;

    /// Labels its memory; `self` stays where it is from now on.
    fn label(&self) {}
}

/// The default: nothing. The slots' locks do all.
#[derive(Debug)]
pub struct PerSlot;

impl<M: Machine> MapLocking<M> for PerSlot {
    type Read<'a> = ();
    type Write<'a> = ();
    type Pmap<'a> = ();
    type Config = ();

    fn new(_: &()) -> Self {
        PerSlot
    }

    #[inline(always)]
    fn is_silent(_: &()) -> bool {
        true
    }

    #[inline]
    fn read(&self) {}

    #[inline]
    fn write(&self) {}

    #[inline]
    fn pmap(&self) {}

    #[inline]
    fn try_pmap(&self) -> Option<()> {
        Some(())
    }
}

/// The tables of a child for 2 MiB of its parent's private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkTables {
    /// Entries of its own, for each page.
    Copied,
    /// The parent's table, until one of them changes an entry of it: of 2 MiB in which at least
    /// so many pages are in memory.
    Shared {
        /// Below, copying is cheaper.
        from: usize,
    },
}

impl ForkTables {
    /// The best choice as a rule, and the default.
    pub const BEST: Self = ForkTables::Shared { from: 32 };
}

impl Default for ForkTables {
    fn default() -> Self {
        Self::BEST
    }
}

/// How the mappings of an object's page are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ObjectPages {
    /// By the object's attachments, which say where the page may be mapped. A mapping is an entry
    /// and nothing else.
    #[default]
    Attached,
    /// By PV entries, as those of private pages; each mapping has a reference to the page.
    Listed,
}

/// The pools of free frames that are in no CPU's cache, each under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FramePools {
    /// One for eight CPUs.
    #[default]
    Near,
    /// One for each NUMA node. So CPUs of a node are given frames of the same 2 MiB.
    Node,
    /// One for all.
    One,
}

/// A system: a machine, and the parts in which designs of the field differ.
pub trait System: Sized + 'static {
    /// The machine on which it runs.
    type Machine: Platform;
    /// How removal by the reverse map waits.
    type Invalidation: Invalidation<Self::Machine>;
    /// How swap space is reserved.
    type Swap: Reservation<Self::Machine>;
    /// The locks of a space beside its slots.
    type Locking: MapLocking<Self::Machine>;
    /// A system's records of a space's regions.
    type Regions: Regions<Self::Machine>;
    /// Where pages queue.
    type Queues: PageQueues<Self::Machine>;
    /// Which lock protects a page's PV list.
    type PvLocks: PvLocking<Self::Machine>;
    /// Where PV entries are kept.
    type PvChunks: PvChunks<Self::Machine>;
}

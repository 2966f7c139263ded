//! FreeBSD's designs, with the years of their use.

/// The part of [`vm::system::Invalidation`] that is the same in every design whose blocks may sleep
/// and which keeps nothing in a page: entering a mapping and removing by the reverse map take no
/// lock, since a new mapping flushes the one it replaces before it releases the PV lock.
macro_rules! nothing_in_pages {
    () => {
        type Held<'a> = ();
        type Page = ();

        #[inline]
        fn may_sleep(&self) -> bool {
            true
        }
    };
}

mod di;
mod domain;
mod elements;
mod entry;
mod epoch_di;
mod generation;
mod lockless_di;
mod object;
mod pageq;
mod pgcache;
mod pv_chunks;
mod pv_locks;
mod pvh;
mod resident;
mod steps;
pub mod swap;

pub use crate::map_locks::{FreebsdKinds, OneLock, PmapTables, SpaceMap, SxKinds, SxMap};
pub use di::{Di, DiBlock, InvlGen};
pub use domain::{DomainFree, FreeHeld, MemoryDomains, PartlyPopulated};
pub use entry::{Entries, EntryFault, VmEntries, VmMap, VmMapHeld};
pub use epoch_di::EpochDi;
pub use lockless_di::{LocklessBlock, LocklessDi};
pub use object::{AnonObject, FileObject, VmObjectLock};
pub use pageq::{BatchedQueues, PageQueue};
pub use pgcache::{PageCache, ZoneDomain};
pub use pv_chunks::{Chunks, Order, PmapChunks, PmapState, PvChunkList};
pub use pv_locks::{ListLocks, PvListHeld, PvListLock, PvListLocks};
pub use pvh::{Pvh, PvhGlobal, PvhHeld};
pub use steps::{Sound, Steps};

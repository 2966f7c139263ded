//! FreeBSD's designs, with the years of their use.

/// The part of [`vm::policy::Invalidation`] that is the same in every design whose blocks may sleep
/// and which keeps nothing in a page: entering a mapping and removing by the reverse map take no
/// lock, since a new mapping flushes the one it replaces before it releases the PV lock.
macro_rules! nothing_in_pages {
    () => {
        type Enter<'a> = ();
        type Reverse<'a> = ();
        type Page = ();
        type Config = ();

        fn new_page() {}

        #[inline]
        fn may_sleep(&self) -> bool {
            true
        }

        #[inline]
        fn enter(&self) {}

        #[inline]
        fn reverse(&self) {}
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

pub use crate::map_locks::{OneLock, PmapTables, SpaceMap, SxMap};
pub use di::{Di, DiBlock, InvlGen};
pub use domain::{DomainFree, FreeHeld, MemoryDomains, PartlyPopulated};
pub use entry::{EntryFault, VmEntries};
pub use epoch_di::EpochDi;
pub use lockless_di::{LocklessBlock, LocklessDi};
pub use object::{AnonObject, FileObject, VmObjectLock};
pub use pageq::{BatchedQueues, PageQueue};
pub use pgcache::{PageCache, ZoneDomain};
pub use pv_chunks::{Chunks, Order, PmapChunks, PmapState, PvChunkList};
pub use pv_locks::{ListLocks, PvListHeld, PvListLock, PvListLocks};
pub use pvh::{Pvh, PvhGlobal};
pub use steps::{Sound, Steps};

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
mod elements;
mod epoch_di;
mod generation;
mod lockless_di;
mod pv_chunks;
mod pv_locks;
mod pvh;
mod steps;
pub mod swap;

pub use crate::map_locks::{OneLock, PmapTables, SpaceMap};
pub use di::{Di, DiBlock, InvlGen};
pub use epoch_di::EpochDi;
pub use lockless_di::{LocklessBlock, LocklessDi};
pub use pv_chunks::{Chunks, Order, PmapChunks, PmapState, PvChunkList};
pub use pv_locks::{ListLocks, PvListHeld, PvListLock, PvListLocks};
pub use pvh::{Pvh, PvhGlobal};
pub use steps::{Sound, Steps};

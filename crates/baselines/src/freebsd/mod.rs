//! FreeBSD's designs, by the years in which it had them.

mod di;
mod epoch_di;
mod generation;
mod lockless_di;
mod one_lock;
mod pv_chunks;
mod pv_locks;
mod pvh;
mod steps;
pub mod swap;

pub use di::{Di, DiBlock, InvlGen};
pub use epoch_di::EpochDi;
pub use lockless_di::{LocklessBlock, LocklessDi};
pub use one_lock::{MapRead, MapWrite, OneLock, PmapHeld, PmapTables, SpaceMap};
pub use pv_chunks::{Chunks, Order, PmapChunks, PmapState, PvChunkList};
pub use pv_locks::{ListLocks, PvListHeld, PvListLock, PvListLocks};
pub use pvh::{Exclusive, Pvh, PvhGlobal, Shared};
pub use steps::{Sound, Steps};

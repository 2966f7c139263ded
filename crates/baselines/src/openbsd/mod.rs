//! OpenBSD around 7.0 (autumn 2021), the system of case study 003.
//!
//! Its pmap has a mutex and each page a mutex for its PV list (arm64): the first is in [`VmMap`];
//! `vm`'s own byte in each page stands for the second.

mod amap;
mod entry;
mod kernel;
mod pageq;
mod rwlock;
mod sleep;

pub use crate::map_locks::{PmapMutex, VmMap, VmMapLock};
pub use amap::{Amap, AmapList, AmapListLock, AmapLock, Locked};
pub use entry::{FaultLocks, MapEntries, ObjectLock, Uobj};
pub use kernel::{BigLock, Faults};
pub use pageq::{FreePageLock, FreePages, GlobalQueues, PageQueueLock};
pub use rwlock::SleepRw;
pub use sched::openbsd::KernelLock;
pub use sched::openbsd::{MpLock, SchedLock};
pub use sleep::Scheduler;

//! OpenBSD around 7.0 (autumn 2021), the system of case study 003, and 7.6 (autumn 2024).
//!
//! Its pmap has a mutex and each page a mutex for its PV list (arm64): the first is in [`VmMap`];
//! `vm`'s own byte in each page stands for the second.
//!
//! Of the memory system 7.6 has the same locks as 7.0 after the unlocking of faults: `vm_map`'s
//! rwlock, a lock for a family of amaps, `vmobjlock`, `pageqlock`, `fpageqlock` behind caches of
//! each CPU. What has changed is which calls take `KERNEL_LOCK` ([`BigLock`]). `SCHED_LOCK` became
//! a mutex that is not recursive (7.6); here it stays the ticket lock.

mod amap;
mod entry;
mod kernel;
mod pageq;
mod rwlock;
mod sleep;

pub use crate::map_locks::{OpenbsdKinds, PmapMutex, VmMapLock};
pub use amap::{Amap, AmapList, AmapListLock, AmapLock, Locked};
pub use entry::{FaultLocks, MapEntries, ObjectLock, Uobj, Uvm, VmMap, VmMapHeld};
pub use kernel::{BigLock, Unlocked};
pub use pageq::{FreePageLock, FreePages, GlobalQueues, PageQueueLock};
pub use rwlock::SleepRw;
pub use sched::openbsd::KernelLock;
pub use sched::openbsd::{MpLock, SchedLock};
pub use sleep::Scheduler;

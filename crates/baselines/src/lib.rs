//! The designs that did not scale, as their authors built them.
//!
//! Each is a part of a [`vm::system`]: plugged into the same virtual-memory subsystem, it shows the
//! cost of one lock or one list and nothing else. The structures, the lock traffic and the order of
//! the steps are those of the named systems; where something had to differ, the module says what
//! and why.
//!
//! | part | system | where all CPUs meet |
//! |---|---|---|
//! | [`freebsd::Pvh`] | FreeBSD 10 | one reader/writer lock over whole operations |
//! | [`freebsd::Di`] | FreeBSD 2016 to 2019, the "before" of case study 000 | one mutex at the start and finish of a block |
//! | [`freebsd::LocklessDi`] | FreeBSD since May 2019 (r347695) | one list's head and tail |
//! | [`freebsd::EpochDi`] | the experiment of case study 000 | nothing, but each wait is a grace period |
//! | [`freebsd::PvListLocks`] | FreeBSD since 2012, the "stock" of case study 002 | one of 256 locks for all PV lists of 2 MiB, or one for each 2 MiB |
//! | [`freebsd::Chunks`] | FreeBSD; the "after" of case study 002 | a list of all PV chunks, or one of all pmaps |
//! | [`freebsd::OneLock`] | FreeBSD up to 2020 | a space's rwlock and the pmap's mutex, if they share the space |
//! | [`freebsd::swap::MutexSwap`] | FreeBSD in May 2018 | one mutex, then one more per user |
//! | [`freebsd::swap::AtomicSwap`] | FreeBSD today | two counters |
//! | [`freebsd::Entries`] | FreeBSD 14 | an object's lock, and those of the objects behind it after forks |
//! | [`freebsd::BatchedQueues`], [`freebsd::MemoryDomains`] | FreeBSD 14 | a NUMA node's queue of pages, and the count of its free ones |
//! | [`linux::Linux`] | Linux 2.6.39 and 3.0, case study 004 | the lock of the ancestor's anon_vma; a file's list of mappings |
//! | [`linux::Rwsems`], [`linux::MmapLock`] | Linux 6.12 | `mmap_lock`, for changes only |
//! | [`linux::CommittedAs`] | Linux up to 5.8 | a counter of committed memory, for each large mapping |
//! | [`linux::Lruvecs`] | Linux 6.12 | a NUMA node's list of pages, and the counters of the control group |
//!
//! [`selected`] chooses among them, and `vm`'s own designs, at run time; a [`Preset`] names a
//! choice.
#![no_std]

extern crate alloc;

pub mod freebsd;
pub mod linux;
pub mod map_locks;
pub mod openbsd;
mod page_list;
mod presets;
pub mod selected;

pub use presets::{Preset, Row, Scheduling, UnknownPreset};

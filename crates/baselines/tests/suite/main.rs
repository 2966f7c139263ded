//! The systems of the case studies on hosted memory: the contracts of their parts, whole VMs with
//! them, naive models of them, and all interleavings of their locks.
//!
//! One program, since each has a copy of the whole VM in it.

mod alan_cox;
mod conformance;
mod freebsd;
mod linux;
mod lru;
mod model;
mod model_linux_mutex;
mod model_openbsd;
mod model_vma_lock;
mod openbsd;
mod presets;
mod pv;
mod stress;
mod superpages;
mod swap;
mod truncate;

// Their shared parts.
mod common;
mod cpus;
mod page_queues;

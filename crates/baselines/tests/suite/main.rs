//! The systems of the case studies on hosted memory: the contracts of their parts, and whole VMs
//! with them.
//!
//! One program, since each has a copy of the whole VM in it.

mod alan_cox;
mod conformance;
mod freebsd;
mod linux;
mod lru;
mod openbsd;
mod presets;
mod pv;
mod stress;
mod superpages;
mod swap;
mod truncate;

// Their shared parts.
#[path = "../common/mod.rs"]
mod common;
mod cpus;
mod page_queues;

//! The systems of the seeds on hosted memory: what their policies promise, and what a VM does with them.
//!
//! One program, since each has a copy of the whole VM in it.

mod alan_cox;
mod conformance;
mod linux;
mod openbsd;
mod presets;
mod pv;
mod stress;
mod superpages;
mod swap;

// What they share.
#[path = "../common/mod.rs"]
mod common;
mod cpus;

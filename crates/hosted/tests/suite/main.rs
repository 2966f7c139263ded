//! Threads as CPUs.

mod attach;
mod conformance;
mod contexts;
mod memory;
mod model_shootdown;
mod pager;
mod pins;

// Shared parts.
mod broken;

//! The scheduler, and the policies of other systems.

mod best;
mod conformance;
mod epoch;
mod held;
mod hosted;
mod model;
mod openbsd;
mod policies;
mod tasks;

// Shared parts.
#[path = "support/fifo.rs"]
mod fifo;
mod support;

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

//! Workloads on systems.

mod recorded;
mod simulated;

/// Simulated CPUs allocate in their machine.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

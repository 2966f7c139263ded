//! Workloads on systems.

mod recorded;
mod simulated;
mod whatif;

/// Simulated CPUs allocate in their machine.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

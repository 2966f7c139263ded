//! Workloads on systems.

mod delays;
mod recorded;
mod simulated;
mod whatif;

/// Simulated CPUs allocate in their machine.
#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

/// Shows nothing.
struct Quiet;

impl bench::Progress for Quiet {
    fn point(&self, _: &str) {}
    fn worked(&self, _: u64) {}
    fn finish(&self) {}
}

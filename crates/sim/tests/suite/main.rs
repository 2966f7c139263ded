//! The simulated machine.

mod conformance;
mod disk;
mod flushes;
mod freed;
mod hidden;
mod inspect;
mod large;
mod latency;
mod markov;
mod paces;
mod pins;
mod refund;
mod same;
mod sampler;
mod speeds;

// Shared parts.
mod support;

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

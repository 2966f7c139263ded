//! All interleavings of the protocols that several CPUs follow.

mod model_invalidation;
mod model_kin;
mod model_object;
mod model_reverse;
mod model_space;
mod model_superpage;
mod model_swap;
mod model_swap_allocate;
mod pager;

// Shared parts.
mod spaces;
#[path = "../swapping/mod.rs"]
mod swapping;

//! Short memory, and the swap space.

mod constant_eviction;
mod effects;
mod lazily_freed;
mod short_memory;
mod swap;
mod swap_ahead;
mod swap_races;

//! The VM on hosted memory: the effect of each operation, the state after it fails, and the
//! guarantees when CPUs do several at once.
//!
//! One program, since each has a copy of the whole VM in it. Tests that explore schedules (models),
//! count instructions or watch the order of locks have programs of their own.

mod around;
mod constant_eviction;
mod embedding;
mod execute;
mod failure;
mod failure_mappings;
mod failure_pages;
mod failure_superpages;
mod fences;
mod files;
mod fork;
mod forks;
mod frames;
mod freed_frames;
mod lazily_freed;
mod limits;
mod model;
mod model_fork;
mod model_superpages;
mod object;
mod object_failure;
mod object_races;
mod pmap;
mod query;
mod races;
mod reclaim;
mod remap;
mod remap_sizes;
mod sharers;
mod short_memory;
mod space;
mod stack;
mod superpages;
mod superpages_races;
mod swap;
mod swap_ahead;
mod swap_races;
mod tables;
mod tree;

// Shared parts.
mod failing;
mod refusing;
mod run;
mod store;
#[path = "../swapping/mod.rs"]
mod swapping;
mod system;

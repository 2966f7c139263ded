//! Stores of pages that any machine has.

mod memory;
mod sheet;

pub use memory::{MemoryPager, PagerCounts};

//! Spaces: operations on ranges, faults and queries.

mod around;
mod effects;
mod execute;
mod failures;
mod families;
mod fork;
mod query;
mod races;
mod remap;
mod stack;
mod tree;

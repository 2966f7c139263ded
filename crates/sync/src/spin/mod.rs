//! Spin locks.

mod mcs;

pub use mcs::{Mcs, McsNode};

//! The results of checks, as text or JSON.

pub mod conflicts;
pub mod races;
pub mod sequences;
pub mod taken;

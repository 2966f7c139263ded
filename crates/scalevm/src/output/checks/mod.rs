//! What checks have found, as text or JSON.

pub mod conflicts;
pub mod races;
pub mod sequences;

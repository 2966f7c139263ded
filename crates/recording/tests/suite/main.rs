//! Recordings, their files, and what is made of them.

mod file;
mod hostile;
mod scale;
mod size;

// Shared parts.
mod arbitrary;
mod made;
#[path = "../support/mod.rs"]
mod support;

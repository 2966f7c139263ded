//! Recordings, their files, and what is made of them.

mod file;
mod hostile;
mod part;
mod scale;
mod size;
mod summary;
mod text;

// Shared parts.
mod arbitrary;
mod made;
#[path = "../support/mod.rs"]
mod support;

//! Recordings, their files, and what is made of them.

mod file;
mod hostile;
mod size;

// Shared parts.
mod arbitrary;
mod made;

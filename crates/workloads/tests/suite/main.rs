//! The loops, and what they ask of a system.

mod features;
mod programs;
mod sequence;
mod tasks;

// Shared parts.
mod plain;
mod script;

//! The model, and what it is compared with.

mod generate;
mod linux;
mod model;
mod planted;
mod regressions;
mod text;

// Shared parts.
mod hostile;

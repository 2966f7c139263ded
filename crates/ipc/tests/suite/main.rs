//! How tasks sleep in a kernel, and wake up.

mod futexes;
mod model_futex;
mod pipes;

// Shared parts.
mod on;

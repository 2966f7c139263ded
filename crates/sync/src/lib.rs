//! Locks, epochs and per-CPU state for kernels that must scale.
//!
//! Everything is generic over a [`machine::Machine`], so the very same source
//! runs on hosted threads, on a simulated many-core machine and under an
//! exhaustive checker.
#![no_std]

extern crate alloc;

pub mod adaptive;
mod blocking;
pub mod counter;
pub mod ecosystem;
pub mod epoch;
mod locals;
mod mutex;
pub mod obm;
mod padded;
mod percpu;
mod raw;
pub mod rwlock;
pub mod sleepq;
pub mod spin;
pub mod turnstile;
pub mod watch;

pub use locals::EMBEDDER;
pub use mutex::{Mutex, MutexGuard};
pub use padded::Padded;
pub use percpu::PerCpu;
pub use raw::{RawGuard, RawLock};
pub use rwlock::RwLock;

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Locks, epochs and per-CPU state for kernels that must scale.
//!
//! Everything is generic over a [`machine::Machine`], so the same source
//! runs on hosted threads, on a simulated many-core machine and under an
//! exhaustive checker.
//!
//! | | |
//! |---|---|
//! | [`spin`] | spin locks, for a few instructions under a pin: test-and-set, ticket, CONBO, queues |
//! | [`obm`], [`adaptive`], [`rwlock`] | locks whose waiters spin a little and then sleep: a byte, a word, readers and writers |
//! | [`Mutex`], [`RwLock`] | data behind any of them; with [`ecosystem`] also `lock_api`'s guards, in a `static` |
//! | [`epoch`] | readers without locks, and callbacks when no reader is left |
//! | [`hazard`] | the same with memory that no reader can hold up |
//! | [`counter`] | per-CPU counters with an exact common limit |
//! | [`turnstile`], [`sleepq`] | queues of sleeping tasks |
//! | [`watch`] | checks the order of locks, and counts waits; nothing if it is off |
#![no_std]
#![warn(missing_docs, missing_debug_implementations)]

extern crate alloc;

pub mod adaptive;
mod blocking;
pub mod counter;
mod debug;
mod deferred;
pub mod ecosystem;
mod effort;
pub mod epoch;
pub mod hazard;
mod locals;
mod mutex;
pub mod obm;
pub mod off_cpu;
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

//! How tasks sleep and are woken in a kernel: pipes, futexes, poll (S14 and S15 of case study 003).
//!
//! A [`Kernel`] holds the differences between kernels: the locks taken on entry, how a task sleeps,
//! the lock under which pollers are notified. The structures are the same for each, so that a
//! comparison shows the cost of the kernel's locks and nothing else.
#![no_std]
#![warn(missing_docs, missing_debug_implementations)]

extern crate alloc;

mod debug;
pub mod futex;
mod kernel;
pub mod pipe;
mod poll;

pub use futex::{Futexes, Wait};
pub use kernel::{Entry, Kernel, Own};
pub use pipe::{End, Pipe};
pub use poll::{poll, poll_changes, poll_while};

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

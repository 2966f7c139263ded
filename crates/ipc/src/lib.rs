//! How tasks sleep and are woken in a kernel: pipes, futexes, poll (S14 and S15 of seed 003).
//!
//! What differs between kernels is a [`Kernel`]: what is locked on the way in, how one sleeps,
//! under what pollers are told. The structures are the same over each, so that a
//! comparison shows what the kernel's locks cost and nothing else.
#![no_std]

extern crate alloc;

pub mod futex;
mod kernel;
pub mod pipe;
mod poll;

pub use futex::Futexes;
pub use kernel::{Entry, Kernel, Own};
pub use pipe::{End, Pipe};
pub use poll::poll;

//! How tasks sleep and are woken in a kernel: pipes, futexes, poll (S14 and S15 of seed 003).
//!
//! What differs between kernels is a [`Kernel`]: what is locked on the way in, how one sleeps,
//! under what pollers are told. The structures are the same over each, so that a
//! comparison shows what the kernel's locks cost and nothing else.
#![no_std]

extern crate alloc;

mod kernel;

pub use kernel::{Entry, Kernel, Own};

//! A virtual-memory subsystem that scales.
#![no_std]

extern crate alloc;

pub mod policy;

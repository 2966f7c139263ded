//! A virtual-memory subsystem that scales.
//!
//! [`Vm`] is a machine's memory, [`Space`] an address space in it. The differences between
//! operating systems are traits, the parts of a [`system`]; [`Best`] has the project's own designs.
//!
//! | to | begin with |
//! |---|---|
//! | make a VM of a machine's memory | [`Vm::with_options`], [`Options`] |
//! | map, fault, fork, unmap | [`Space`] |
//! | map files and shared memory | [`object::Object`], [`Request`] |
//! | have more than there is memory for | [`swap::SwapSpace`], [`Vm::keep_free`] |
//! | answer `/proc` | [`proc`], [`Space::stats`] |
//! | try another design | [`system`], [`System`] |
//!
//! An operation that is refused returns an [`Error`] with Linux's errno. [`lock`] has the order of
//! locks, and the module of each structure its protocol. `examples/embed` is a machine in less than
//! 250 lines and a program on it.
#![no_std]
#![warn(missing_docs, missing_debug_implementations)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod best;
mod debug;
mod error;
mod file;
mod flags;
mod frames;
pub mod heap;
pub mod invalidation;
pub mod linux;
pub mod lock;
pub mod object;
mod page;
pub mod pager;
mod pmap;
pub mod proc;
mod prot;
pub mod pv;
mod reclaim;
mod space;
pub mod swap;
pub mod system;
mod tree;
mod usage;
mod vm;

pub use best::Best;
pub use error::{Error, Resource};
pub use flags::{Flags, Superpages};
pub use frames::{Content, Frames};
pub use page::Page;
pub use pmap::{Pmap, Removed};
pub use prot::Prot;
pub use space::{
    Advice, At, Bring, Footprint, HEAP_START, HIGHEST, LOWEST, MAP_START, MappedObject, Mappings,
    Move, PagePlace, Region, Request, Space, Stats,
};
pub use system::System;
pub use usage::{Limit, Usage};
pub use vm::{FAULT_AROUND, Hold, Interrupted, Options, OutOfMemory, Overcommit, Vm};

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

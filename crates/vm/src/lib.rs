//! A virtual-memory subsystem that scales.
//!
//! [`Vm`] is a machine's memory, [`Space`] an address space in it. The differences between the systems
//! of the field are [`policy`] traits; [`Best`] has the project's own designs.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod best;
mod error;
mod file;
mod flags;
mod frames;
pub mod heap;
pub mod invalidation;
pub mod lock;
pub mod object;
mod page;
pub mod pager;
mod pmap;
pub mod policy;
pub mod proc;
mod prot;
pub mod pv;
mod reclaim;
mod space;
pub mod swap;
mod tree;
mod usage;
mod vm;

pub use best::Best;
pub use error::{Error, Resource};
pub use flags::{Flags, Superpages};
pub use frames::{Content, Frames};
pub use page::Page;
pub use pmap::{Pmap, Removed};
pub use policy::Policies;
pub use prot::Prot;
pub use space::{
    Advice, At, Footprint, HEAP_START, HIGHEST, LOWEST, MAP_START, MappedObject, Move, PagePlace,
    Region, Request, Space, Stats,
};
pub use usage::{Limit, Usage};
pub use vm::{Hold, Options, OutOfMemory, Overcommit, Vm};

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! A virtual-memory subsystem that scales.
//!
//! [`Vm`] is a machine's memory, [`Space`] an address space in it. What the systems of
//! the field do differently are [`policy`] traits; the defaults, [`Best`], are ours.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod asids;
mod error;
mod frames;
mod heap;
pub mod invalidation;
pub mod lock;
pub mod object;
mod overcommit;
mod page;
pub mod pager;
mod pmap;
pub mod policy;
pub mod proc;
mod prot;
pub mod pv;
mod reclaim;
mod roster;
mod space;
mod superpages;
pub mod swap;
mod tree;
mod vm;

pub use error::{Error, Resource};
pub use frames::{Content, Frames};
pub use overcommit::Overcommit;
pub use page::Page;
pub use pmap::{Pmap, Removed};
pub use policy::{Best, Policies};
pub use prot::Prot;
pub use reclaim::OutOfMemory;
pub use space::{
    Advice, At, Footprint, HEAP_START, HIGHEST, LOWEST, Limit, MAP_START, MappedObject, Move,
    PagePlace, Region, Request, Space, Stats,
};
pub use superpages::Superpages;
pub use tree::{Flags, Usage};
pub use vm::{Hold, Options, Vm};

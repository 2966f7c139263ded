//! The meaning of the operations of virtual memory.
//!
//! A [`Step`] is one call of one process; a sequence of them is text that a person can read and
//! replay ([`text`]). A [`System`] performs steps: the naive [`Model`], which is the specification,
//! the kernel of this computer ([`Linux`]), or any other implementation of the trait. [`generate`]
//! makes sequences, [`check`] compares systems step by step and shortens the sequences in which
//! they differ.
//!
//! A page is 4 KiB. Effects that the model does not define are never compared; [`model`] lists
//! them.

pub mod address;
pub mod careless;
pub mod check;
pub mod flags;
pub mod generate;
pub mod linux;
pub mod model;
pub mod outcome;
pub mod places;
pub mod planted;
pub mod step;
mod system;
pub mod text;

pub use linux::Linux;
pub use model::Model;
pub use outcome::Outcome;
pub use step::{Call, Step};
pub use system::{Broken, Halfway, System};

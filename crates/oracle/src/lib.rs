//! What the operations of virtual memory mean, and whom to ask.
//!
//! A [`Step`] is one call of one process; a sequence of them is text that a person reads and
//! replays ([`text`]). A [`System`] performs steps: the naive [`Model`], which is the
//! specification, the kernel of this computer ([`Linux`]), or whoever implements the trait.
//! [`generate`] makes sequences, [`check`] compares systems step by step and makes what they
//! differ in short.
//!
//! Pages have 4 KiB. What the model does not define is compared nowhere; [`model`] lists it.

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

//! Policies chosen at run time, and the names they are chosen by.
//!
//! The command instantiates the virtual-memory subsystem twice: with `vm`'s own designs,
//! and with [`AnyInvalidation`] and [`AnySwap`], which dispatch on an enum. Both take
//! `vm`'s own design as a type parameter, so that it can be compared with the baselines
//! at the same cost of dispatch (one predictable branch an operation).

mod invalidation;
mod preset;
mod swap;

pub use invalidation::{AnyBlock, AnyEnter, AnyInvalidation, AnyReverse, Design};
pub use preset::{Preset, UnknownPreset};
pub use swap::{Account, AnySwap};

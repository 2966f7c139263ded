//! Policies chosen at run time, and the names they are chosen by.
//!
//! The command instantiates the virtual-memory subsystem twice: with `vm`'s own designs,
//! and with [`AnyInvalidation`] and [`AnySwap`], which dispatch on an enum. Both take
//! `vm`'s own design as a type parameter, so that it can be compared with the baselines
//! at the same cost of dispatch (one predictable branch an operation).

mod invalidation;
mod kernel;
mod preset;
mod swap;

pub use invalidation::{AnyBlock, AnyEnter, AnyInvalidation, AnyReverse, Design};
pub use kernel::AnyKernel;
pub use preset::{Preset, UnknownPreset};
pub use swap::{Account, AnySwap};

use crate::freebsd::OneLock;
use machine::Machine;
use vm::policy::{ForkTables, NoQueues, NoRegions};
use vm::{Best, Policies};

/// Every policy chosen at run time; `vm`'s own among the choices. But for the locks of a
/// space, which are [`OneLock`] in all the presets that are selected; and a fork copies tables, as
/// the systems of the seeds do.
pub struct Selected;

impl<M: Machine> Policies<M> for Selected {
    type Invalidation = AnyInvalidation<M, <Best as Policies<M>>::Invalidation>;
    type Swap = AnySwap<M, <Best as Policies<M>>::Swap>;
    type Locking = OneLock<M>;
    type Regions = NoRegions;
    type Queues = NoQueues;
    const FORK_TABLES: ForkTables = ForkTables::Copied;
}

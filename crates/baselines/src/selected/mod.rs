//! Policies chosen at run time, and the names they are chosen by.
//!
//! The command instantiates the virtual-memory subsystem twice: with `vm`'s own designs,
//! and with [`AnyInvalidation`], [`AnySwap`] and [`AnyRegions`], which dispatch on an enum. The first two take
//! `vm`'s own design as a type parameter, so that it can be compared with the baselines
//! at the same cost of dispatch (one predictable branch an operation).

mod invalidation;
mod kernel;
mod locking;
mod preset;
mod pv;
mod queues;
mod regions;
mod swap;

pub use invalidation::{AnyBlock, AnyEnter, AnyInvalidation, AnyReverse, Design};
pub use kernel::AnyKernel;
pub use locking::{AnyLocking, AnyMapRead, AnyMapWrite, AnyPmap, Locks};
pub use preset::{Preset, UnknownPreset};
pub use pv::{AnyPvChunks, AnyPvHeld, AnyPvLocks};
pub use queues::{AnyQueues, Queueing};
pub use regions::{AnyCommon, AnyFault, AnyObject, AnyRegions, Keeping};
pub use swap::{Account, AnySwap};

use machine::Machine;
use vm::{Best, Policies};

/// Every policy chosen at run time; `vm`'s own among the choices. But for the locks of a
/// space, of which each preset that is selected has some.
pub struct Selected;

impl<M: Machine> Policies<M> for Selected {
    type Invalidation = AnyInvalidation<M, <Best as Policies<M>>::Invalidation>;
    type Swap = AnySwap<M, <Best as Policies<M>>::Swap>;
    type Locking = AnyLocking<M>;
    type Regions = AnyRegions<M>;
    type Queues = AnyQueues<M>;
    type PvLocks = AnyPvLocks<M>;
    type PvChunks = AnyPvChunks<M>;
}

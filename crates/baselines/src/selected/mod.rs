//! Policies chosen at run time, and the names they are chosen by.
//!
//! Each policy dispatches on an enum, and `vm`'s own design is among the choices of each: so it is
//! compared with the baselines at the same cost of dispatch (one predictable branch per operation).
//! `docs/costs.md` has its cost when it is chosen at compile time.

mod invalidation;
mod kernel;
mod locking;
mod pv;
mod queues;
mod regions;
mod swap;

pub use invalidation::{AnyBlock, AnyEnter, AnyInvalidation, AnyReverse, Design};
pub use kernel::AnyKernel;
pub use locking::{AnyLocking, AnyMapRead, AnyMapWrite, AnyPmap, Locks};
pub use pv::{AnyPvChunks, AnyPvHeld, AnyPvLocks, PvLocks};
pub use queues::{AnyFree, AnyQueues, Queueing};
pub use regions::{AnyCommon, AnyFault, AnyObject, AnyRegions, Keeping};
pub use swap::{Account, AnySwap};

use core::marker::PhantomData;
use machine::Platform;
use vm::{Best, System};

/// Every policy chosen at run time; `vm`'s own among the choices.
pub struct Selected<M>(PhantomData<M>);

impl<M: Platform> System for Selected<M> {
    type Machine = M;
    type Invalidation = AnyInvalidation<M, <Best<M> as System>::Invalidation>;
    type Swap = AnySwap<M, <Best<M> as System>::Swap>;
    type Locking = AnyLocking<M>;
    type Regions = AnyRegions<M>;
    type Queues = AnyQueues<M>;
    type PvLocks = AnyPvLocks<M>;
    type PvChunks = AnyPvChunks<M>;
}

//! Parts chosen at run time, and the enums that choose them.
//!
//! Each part dispatches on an enum, and `vm`'s own design is one of its choices: so the comparison
//! with the baselines is at the same cost of dispatch (one predictable branch per operation).
//! `docs/costs.md` gives its cost when it is chosen at compile time.

mod gate;
mod invalidation;
mod kernel;
mod pv;
mod queues;
mod swap;

pub use gate::{AnyGate, AnyGuard, AnyObject, AnyPmap, AnySpace, Gates};
pub use invalidation::{AnyBlock, AnyHeld, AnyInvalidation, Design};
pub use kernel::AnyKernel;
pub use pv::{AnyPvHeld, AnyPvLocks, PvLocks};
pub use queues::{AnyFree, AnyQueues, Queueing};
pub use swap::{Account, AnySwap};

use crate::freebsd::Chunks;
use core::marker::PhantomData;
use machine::Platform;
use vm::{Best, System};

/// A system whose parts are all chosen at run time, `vm`'s own among the choices.
pub struct Selected<M>(PhantomData<M>);

impl<M: Platform> System for Selected<M> {
    type Machine = M;
    type Gate = AnyGate<M>;
    type Invalidation = AnyInvalidation<M, <Best<M> as System>::Invalidation>;
    type Swap = AnySwap<M, <Best<M> as System>::Swap>;
    type Queues = AnyQueues<M>;
    type PvLocks = AnyPvLocks<M>;
    type PvChunks = Chunks<M>;
}

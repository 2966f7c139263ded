//! The default of each part.

use crate::system::{NoChunks, NoGate, NoQueues, PvBytes, System};
use core::marker::PhantomData;
use machine::Platform;

/// The project's own design of each part, on the machine `M`.
#[derive(Debug)]
pub struct Best<M>(PhantomData<M>);

impl<M: Platform> System for Best<M> {
    type Machine = M;
    type Gate = NoGate;
    type Invalidation = crate::invalidation::Snapshots<M>;
    type Swap = crate::swap::PerCpuSwap<M>;
    type Queues = NoQueues;
    type PvLocks = PvBytes;
    type PvChunks = NoChunks;
}

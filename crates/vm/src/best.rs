//! The default of each policy.

use crate::policy::{NoQueues, NoRegions, PerSlot, Policies, PvBytes, PvInTables};
use machine::Machine;

/// The project's own design of each policy.
#[derive(Debug)]
pub struct Best;

impl<M: Machine> Policies<M> for Best {
    type Invalidation = crate::invalidation::Snapshots<M>;
    type Swap = crate::swap::PerCpuSwap<M>;
    type Locking = PerSlot;
    type Regions = NoRegions;
    type Queues = NoQueues;
    type PvLocks = PvBytes;
    type PvChunks = PvInTables;
}

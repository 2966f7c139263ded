//! Queues of pages, chosen at run time.

use crate::freebsd::{BatchedQueues, FreeHeld};
use crate::linux::{Batches, Lruvecs};
use crate::openbsd::{FreePages, GlobalQueues};
use machine::{Frame, Machine};
use vm::Error;
use vm::system::{Extent, PageQueues, Part, Purpose};

/// The queues of an [`AnyQueues`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queueing {
    /// No queues: pages age in their descriptors, and CPUs keep free ones.
    #[default]
    Nowhere,
    /// FreeBSD 14's queues, changed by batches ([`BatchedQueues`]).
    Batched,
    /// OpenBSD's one queue under one mutex ([`GlobalQueues`]).
    Global,
    /// Linux's list for each node and control group ([`Lruvecs`]).
    Lruvecs(Batches),
}

/// The queues of pages, chosen when the VM is made.
pub enum AnyQueues<M: Machine> {
    /// For [`Queueing::Nowhere`].
    Nowhere,
    /// For [`Queueing::Batched`].
    Batched(BatchedQueues<M>),
    /// For [`Queueing::Global`].
    Global(GlobalQueues<M>),
    /// For [`Queueing::Lruvecs`].
    Lruvecs(Lruvecs<M>),
}

/// The free pages, locked if that takes a lock.
#[derive(Default)]
#[must_use = "the lock is released when this is dropped"]
pub enum AnyFree<'a, M: Machine> {
    /// No lock is held.
    #[default]
    Unlocked,
    /// For [`Queueing::Global`].
    Global(FreePages<'a, M>),
    /// For [`Queueing::Batched`].
    Batched(Option<FreeHeld<'static, M>>),
}

impl<M: Machine> Part<M> for AnyQueues<M> {
    type Config = Queueing;

    fn new(queueing: &Queueing, extent: Extent) -> Result<Self, Error> {
        Ok(match queueing {
            Queueing::Nowhere => AnyQueues::Nowhere,
            Queueing::Batched => AnyQueues::Batched(BatchedQueues::new(&(), extent)?),
            Queueing::Global => AnyQueues::Global(GlobalQueues::new(&(), extent)?),
            Queueing::Lruvecs(batches) => AnyQueues::Lruvecs(Lruvecs::new(batches, extent)?),
        })
    }

    #[inline]
    fn is_silent(&self) -> bool {
        matches!(self, AnyQueues::Nowhere)
    }

    fn label(&self) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Batched(queues) => queues.label(),
            AnyQueues::Global(queues) => queues.label(),
            AnyQueues::Lruvecs(lists) => lists.label(),
        }
    }
}

impl<M: Machine> PageQueues<M> for AnyQueues<M> {
    type Free<'a> = AnyFree<'a, M>;

    #[inline]
    #[track_caller]
    fn take(&self, purpose: Purpose) -> AnyFree<'_, M> {
        match self {
            AnyQueues::Nowhere | AnyQueues::Lruvecs(_) => AnyFree::Unlocked,
            AnyQueues::Batched(queues) => AnyFree::Batched(queues.take(purpose)),
            AnyQueues::Global(queues) => AnyFree::Global(queues.take(purpose)),
        }
    }

    #[inline]
    #[track_caller]
    fn give(&self, purpose: Purpose) -> AnyFree<'_, M> {
        match self {
            AnyQueues::Nowhere | AnyQueues::Lruvecs(_) => AnyFree::Unlocked,
            AnyQueues::Batched(queues) => AnyFree::Batched(queues.give(purpose)),
            AnyQueues::Global(queues) => AnyFree::Global(queues.give(purpose)),
        }
    }

    #[inline]
    #[track_caller]
    fn activate(&self, frame: Frame) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Batched(queues) => queues.activate(frame),
            AnyQueues::Global(queues) => queues.activate(frame),
            AnyQueues::Lruvecs(lists) => lists.activate(frame),
        }
    }

    #[inline]
    #[track_caller]
    fn remove(&self, frame: Frame) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Batched(queues) => queues.remove(frame),
            AnyQueues::Global(queues) => queues.remove(frame),
            AnyQueues::Lruvecs(lists) => lists.remove(frame),
        }
    }
}

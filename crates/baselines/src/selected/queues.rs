//! Any queues of pages.

use crate::linux::Lruvecs;
use crate::openbsd::{FreePages, GlobalQueues};
use machine::{CpuRange, Frame, Machine};
use vm::Error;
use vm::policy::PageQueues;

/// The queues of an [`AnyQueues`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queueing {
    /// None: pages age in their descriptors, free ones are with the CPUs.
    #[default]
    Nowhere,
    /// [`GlobalQueues`].
    Global,
    /// [`Lruvecs`].
    Lruvecs,
}

/// Where pages queue, chosen when the VM is made.
pub enum AnyQueues<M: Machine> {
    /// See [`Queueing::Nowhere`].
    Nowhere,
    /// See [`Queueing::Global`].
    Global(GlobalQueues<M>),
    /// See [`Queueing::Lruvecs`].
    Lruvecs(Lruvecs<M>),
}

impl<M: Machine> PageQueues<M> for AnyQueues<M> {
    type Config = Queueing;
    type Free<'a> = Option<FreePages<'a, M>>;

    fn new(queueing: &Queueing, cpus: CpuRange, frames: usize) -> Result<Self, Error> {
        Ok(match queueing {
            Queueing::Nowhere => AnyQueues::Nowhere,
            Queueing::Global => AnyQueues::Global(GlobalQueues::new(&(), cpus, frames)?),
            Queueing::Lruvecs => AnyQueues::Lruvecs(Lruvecs::new(&(), cpus, frames)?),
        })
    }

    fn label(&self) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Global(queues) => queues.label(),
            AnyQueues::Lruvecs(lists) => lists.label(),
        }
    }

    #[inline]
    fn is_used(&self) -> bool {
        !matches!(self, AnyQueues::Nowhere)
    }

    #[inline]
    #[track_caller]
    fn free(&self) -> Option<FreePages<'_, M>> {
        match self {
            AnyQueues::Nowhere | AnyQueues::Lruvecs(_) => None,
            AnyQueues::Global(queues) => Some(queues.free()),
        }
    }

    #[inline]
    #[track_caller]
    fn activate(&self, frame: Frame) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Global(queues) => queues.activate(frame),
            AnyQueues::Lruvecs(lists) => lists.activate(frame),
        }
    }

    #[inline]
    #[track_caller]
    fn remove(&self, frame: Frame) {
        match self {
            AnyQueues::Nowhere => {}
            AnyQueues::Global(queues) => queues.remove(frame),
            AnyQueues::Lruvecs(lists) => lists.remove(frame),
        }
    }
}

//! Any queues of pages.

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
}

/// Where pages queue, chosen when the VM is made.
pub enum AnyQueues<M: Machine> {
    /// See [`Queueing::Nowhere`].
    Nowhere,
    /// See [`Queueing::Global`].
    Global(GlobalQueues<M>),
}

impl<M: Machine> PageQueues<M> for AnyQueues<M> {
    type Config = Queueing;
    type Free<'a> = Option<FreePages<'a, M>>;

    fn new(queueing: &Queueing, cpus: CpuRange, frames: usize) -> Result<Self, Error> {
        Ok(match queueing {
            Queueing::Nowhere => AnyQueues::Nowhere,
            Queueing::Global => AnyQueues::Global(GlobalQueues::new(&(), cpus, frames)?),
        })
    }

    fn label(&self) {
        if let AnyQueues::Global(queues) = self {
            queues.label();
        }
    }

    #[inline]
    fn is_used(&self) -> bool {
        matches!(self, AnyQueues::Global(_))
    }

    #[inline]
    #[track_caller]
    fn free(&self) -> Option<FreePages<'_, M>> {
        match self {
            AnyQueues::Nowhere => None,
            AnyQueues::Global(queues) => Some(queues.free()),
        }
    }

    #[inline]
    #[track_caller]
    fn activate(&self, frame: Frame) {
        if let AnyQueues::Global(queues) = self {
            queues.activate(frame);
        }
    }

    #[inline]
    #[track_caller]
    fn remove(&self, frame: Frame) {
        if let AnyQueues::Global(queues) = self {
            queues.remove(frame);
        }
    }
}

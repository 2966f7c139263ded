//! The queues of pages that a system has in addition to the caches of frames.

use super::{Extent, Part};
use crate::error::Error;
use machine::{Frame, Machine};

/// The purpose of a frame that is taken or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A page.
    Page,
    /// The VM's own data: a table, a node, or a chunk of PV entries.
    Own,
}

/// Queues of pages that a system's reclaimer works on, and the lock of its free pages.
///
/// The VM's own reclaimer needs none of them: pages age in their descriptors. If there are none
/// ([`Part::is_silent`]), frames come back several at a time, and only [`PageQueues::take`] is
/// called.
///
/// The default of each method does nothing.
pub trait PageQueues<M: Machine>: Part<M> {
    /// Held while a frame is taken from the free ones or comes back to them.
    type Free<'a>: Default;

    /// Called before a frame is taken from the free ones, perhaps under the lock of a slot or a
    /// page.
    #[inline]
    fn take(&self, _purpose: Purpose) -> Self::Free<'_> {
        Self::Free::default()
    }

    /// Called before a frame comes back to the free ones, perhaps under the lock of a slot or a
    /// page.
    #[inline]
    fn give(&self, _purpose: Purpose) -> Self::Free<'_> {
        Self::Free::default()
    }

    /// Called when a fault has mapped the page, copied it to write, or let it be written. Under the
    /// lock of the slot.
    #[inline]
    fn activate(&self, _frame: Frame) {}

    /// Called when the page has gone; its frame is the caller's, and soon free.
    #[inline]
    fn remove(&self, _frame: Frame) {}
}

/// The default: no queues.
#[derive(Debug)]
pub struct NoQueues;

impl<M: Machine> Part<M> for NoQueues {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(NoQueues)
    }

    #[inline]
    fn is_silent(&self) -> bool {
        true
    }
}

impl<M: Machine> PageQueues<M> for NoQueues {
    type Free<'a> = ();
}

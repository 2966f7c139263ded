//! The queues of pages that a system has beside the caches of frames.

use crate::error::Error;
use machine::{CpuRange, Frame, Machine};

/// What a frame is for, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A page.
    Page,
    /// A table, a node of the VM's own, a chunk of PV entries.
    Own,
}

/// Queues of pages that a system's reclaimer works on, and the lock of its free pages.
///
/// The VM's own reclaimer needs none of them: pages age in their descriptors.
pub trait PageQueues<M: Machine>: Send + Sync + 'static {
    /// The options of the policy, fixed when the VM is made; `()` for most.
    type Config: Default + Clone + Send;
    /// Held while a frame is taken from the free ones or comes back to them.
    type Free<'a>;

    /// Empty queues of a machine.
    fn new(config: &Self::Config, cpus: CpuRange, frames: usize) -> Result<Self, Error>
    where
        Self: Sized;

    /// Returns true if there are queues; never changes. If not, frames come back several at a time,
    /// and [`PageQueues::take`], [`PageQueues::give`] and [`PageQueues::remove`] need not be
    /// called.
    fn is_used(&self) -> bool;

    /// Before a frame is taken from the free ones. Perhaps under a slot's lock, or a page's.
    fn take(&self, purpose: Purpose) -> Self::Free<'_>;

    /// Before a frame comes back to them; as [`PageQueues::take`].
    fn give(&self, purpose: Purpose) -> Self::Free<'_>;

    /// A fault has mapped the page, copied it to write, or let it be written. Under the lock of the
    /// slot.
    fn activate(&self, frame: Frame);

    /// The page has gone; its frame is the caller's, and free soon.
    fn remove(&self, frame: Frame);

    /// Labels its memory; `self` stays where it is from now on.
    fn label(&self) {}
}

/// The default: none.
#[derive(Debug)]
pub struct NoQueues;

impl<M: Machine> PageQueues<M> for NoQueues {
    type Config = ();
    type Free<'a> = ();

    fn new(_: &(), _cpus: CpuRange, _frames: usize) -> Result<Self, Error> {
        Ok(NoQueues)
    }

    #[inline]
    fn is_used(&self) -> bool {
        false
    }

    #[inline]
    fn take(&self, _: Purpose) {}

    #[inline]
    fn give(&self, _: Purpose) {}

    #[inline]
    fn activate(&self, _frame: Frame) {}

    #[inline]
    fn remove(&self, _frame: Frame) {}
}

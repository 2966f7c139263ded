//! The experiment of case study 000: epochs in place of delayed invalidation (S4).
//!
//! A block is a section of one domain; a wait is a grace period. The page plays no part, so a wait
//! costs a grace period even if no block ever touched the page, and waits for unrelated sections.
//! Decision record 0003 lists the cases that this covers and those that it does not.
//!
//! FreeBSD's pmap blocks on its mutexes in a section, so it uses a preemptible epoch: a section
//! belongs to the thread, and other threads run on the CPU while it sleeps.

use machine::{Frame, Machine};
use sync::epoch::{Sleepable, SleepableSection};
use vm::Error;
use vm::system::{Extent, Invalidation, Part};

/// Delayed invalidation by epochs, as in the experiment of case study 000: enter, exit, wait.
pub struct EpochDi<M: Machine> {
    domain: Sleepable<M>,
}

impl<M: Machine> Part<M> for EpochDi<M> {
    type Config = ();

    fn new(_: &(), extent: Extent) -> Result<Self, Error> {
        let domain = Sleepable::new(extent.cpus)?;
        Ok(EpochDi { domain })
    }

    fn label(&self) {
        M::label_value(&self.domain, "EpochDi.domain");
    }
}

// SAFETY: a block is a section from `begin` to its end, and `Sleepable::wait` returns when each
// section open at the call has ended, including the blocks that noted the page.
unsafe impl<M: Machine> Invalidation<M> for EpochDi<M> {
    type Block<'a> = SleepableSection<'a, M>;
    nothing_in_pages!();

    #[inline]
    fn begin(&self) -> SleepableSection<'_, M> {
        self.domain.enter()
    }

    #[inline]
    fn note(&self, _block: &SleepableSection<'_, M>, _frame: Frame, _page: &()) {}

    fn wait(&self, _reverse: &(), _frame: Frame, _page: &()) {
        self.domain.wait();
    }
}

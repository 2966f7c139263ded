//! Seed 000's experiment: epochs in place of delayed invalidation (S4).
//!
//! A block is a section of one domain; a wait is a grace period. The page plays no
//! part, so a wait costs a grace period even if no block ever touched the page, and
//! waits for sections that have nothing to do with it. What that covers and what it
//! does not: decision record 0003.

use machine::{CpuRange, Frame, Machine};
use sync::epoch::{Domain, Section};
use vm::policy::Invalidation;

/// Delayed invalidation by epochs, as seed 000 tried it: enter, exit, wait.
pub struct EpochDi<M: Machine> {
    domain: Domain<M>,
}

// SAFETY: a block is a section from `begin` to its end, and `Domain::wait` returns when
// each section open at the call has ended: the blocks that noted the page among them.
unsafe impl<M: Machine> Invalidation<M> for EpochDi<M> {
    type Block<'a> = Section<'a, M>;
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), cpus: CpuRange, _frames: usize) -> Self {
        EpochDi {
            domain: Domain::new(cpus),
        }
    }

    fn new_page() {}

    #[inline]
    fn begin(&self) -> Section<'_, M> {
        self.domain.enter()
    }

    #[inline]
    fn note(&self, _block: &Section<'_, M>, _frame: Frame, _page: &()) {}

    #[inline]
    fn enter(&self) {}

    #[inline]
    fn reverse(&self) {}

    fn wait(&self, _reverse: &(), _frame: Frame, _page: &()) {
        self.domain.wait();
    }

    fn label(&self) {
        M::label_value(&self.domain, "EpochDi.domain");
    }
}

//! Shared parts of the policies' tests.

use machine::{CpuRange, Frame, Machine};
use vm::policy::Invalidation;

/// The planted fault: no delayed invalidation at all.
pub struct NoDi;

// SAFETY: none; it breaks the contract, and the tests must notice.
unsafe impl<M: Machine> Invalidation<M> for NoDi {
    type Block<'a> = ();
    type Enter<'a> = ();
    type Reverse<'a> = ();
    type Page = ();
    type Config = ();

    fn new(_: &(), _: CpuRange, _: usize) -> Result<Self, vm::Error> {
        Ok(NoDi)
    }
    fn new_page() {}
    fn may_sleep(&self) -> bool {
        true
    }
    fn begin(&self) {}
    fn note(&self, _: &(), _: Frame, _: &()) {}
    fn enter(&self) {}
    fn reverse(&self) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {}
}

//! Shared parts of the parts' tests.

use machine::{Frame, Machine};
use vm::system::{Extent, Invalidation, Part};

/// The planted fault: no delayed invalidation at all.
pub struct NoDi;

impl<M: Machine> Part<M> for NoDi {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, vm::Error> {
        Ok(NoDi)
    }
}

// SAFETY: none; it breaks the contract, and the tests must notice.
unsafe impl<M: Machine> Invalidation<M> for NoDi {
    type Block<'a> = ();
    type Held<'a> = ();
    type Page = ();

    fn may_sleep(&self) -> bool {
        true
    }
    fn begin(&self) {}
    fn note(&self, _: &(), _: Frame, _: &()) {}
    fn wait(&self, _: &(), _: Frame, _: &()) {}
}

//! A machine whose memory is a VM's.

use crate::error::Error;
use core::ops::Deref;
use core::sync::atomic::Ordering;
use machine::Memory;

/// A machine whose frames no other VM uses, until this is dropped.
pub(super) struct Owned<M: Memory>(M);

impl<M: Memory> Owned<M> {
    /// Takes the machine's memory, unless another VM has it.
    pub(super) fn new(machine: M) -> Result<Self, Error> {
        // Acquire: pairs with the release in `drop`.
        if machine.owned().swap(true, Ordering::Acquire) {
            let reason = "another VM has the machine's memory";
            return Err(Error::Invalid { reason });
        }
        Ok(Owned(machine))
    }
}

impl<M: Memory> Deref for Owned<M> {
    type Target = M;

    #[inline]
    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M: Memory> Drop for Owned<M> {
    fn drop(&mut self) {
        self.0.owned().store(false, Ordering::Release);
    }
}

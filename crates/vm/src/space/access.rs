//! What tasks do with their memory.

use super::Space;
use crate::error::Error;
use crate::policy::Policies;
use machine::{PageFault, Platform};

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// A task on this CPU, which runs in this space, reads the aligned word at `address`.
    #[inline]
    pub fn load(&self, address: usize) -> Result<u64, Error> {
        self.access(|| self.vm.machine().load(address))
    }

    /// A task on this CPU, which runs in this space, writes the aligned word at `address`.
    #[inline]
    pub fn store(&self, address: usize, value: u64) -> Result<(), Error> {
        self.access(|| self.vm.machine().store(address, value))
    }

    /// Tries an access until it neither faults nor is refused.
    #[inline]
    fn access<R>(&self, access: impl Fn() -> Result<R, PageFault>) -> Result<R, Error> {
        loop {
            match access() {
                Ok(result) => return Ok(result),
                Err(fault) => self.fault(fault)?,
            }
        }
    }
}

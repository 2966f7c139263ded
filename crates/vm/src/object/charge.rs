//! The memory that an object commits as long as it lives: its size, if the system provides its
//! memory. (Linux's shmem does so, too.)

use super::Object;
use crate::error::Error;
use crate::system::System;
use crate::vm::Vm;
use core::mem;
use machine::PAGE_SIZE;

/// The charge for an object that is to grow; returned unless it is kept.
pub(super) struct Growth<'a, S: System> {
    vm: &'a Vm<S>,
    pages: u64,
}

impl<S: System> Object<S> {
    /// Charges the pages that `size` bytes take beyond the object's. Under the lock of the size.
    pub(super) fn charge(&self, size: u64) -> Result<Growth<'_, S>, Error> {
        machine::invariant!(
            S::Machine: self.resize.is_locked(),
            "an object is charged for a size that may change"
        );
        let more = pages(size).saturating_sub(self.pages());
        let more = if self.committed { more } else { 0 };
        self.vm.commit(more)?;
        Ok(Growth {
            vm: &self.vm,
            pages: more,
        })
    }

    /// Gives back the object's charge beyond `size` bytes; its size was `old`.
    pub(super) fn uncharge(&self, old: u64, size: u64) {
        debug_assert!(size <= old, "an object that grows gives charge back");
        if self.committed {
            self.vm.uncommit(pages(old) - pages(size));
        }
    }
}

impl<S: System> Growth<'_, S> {
    /// Keeps the charge: the object has grown.
    pub(super) fn keep(self) {
        mem::forget(self);
    }
}

impl<S: System> Drop for Growth<'_, S> {
    fn drop(&mut self) {
        self.vm.uncommit(self.pages);
    }
}

/// The number of pages that `size` bytes take.
pub(super) fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE_SIZE as u64)
}

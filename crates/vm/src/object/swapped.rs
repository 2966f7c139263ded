//! Objects whose pages go to the VM's swap space: shared anonymous memory.

use super::{Object, ObjectRef, Slots};
use crate::error::Error;
use crate::swap::SwapSpace;
use crate::system::System;
use crate::vm::Vm;
use alloc::sync::Arc;
use machine::{Frame, PagerError, Platform};

impl<S: System> Vm<S> {
    /// Shared anonymous memory of `bytes` bytes, in the swap space when memory is short. Its
    /// size is charged to the account of swap space as long as it lives.
    pub fn shared_memory(self: &Arc<Self>, bytes: u64) -> Result<ObjectRef<S>, Error> {
        let slots = self.swap_space().cloned();
        let slots = slots.map(|space| -> Arc<dyn Slots<S::Machine>> { space });
        Object::committed(self, slots, bytes)
    }
}

/// A slot of an object is reserved: it has one reference, and no part in the cache. The object
/// finds its pages by itself, and lets one task at a time read.
impl<M: Platform> Slots<M> for SwapSpace<M> {
    fn read(&self, machine: &M, slot: u32, frame: Frame) -> Result<(), PagerError> {
        SwapSpace::read(self, machine, slot, &[frame])
    }

    fn free(&self, slot: u32) {
        let cached = self.release(slot);
        debug_assert!(cached.is_none(), "an object's slot has no cache");
    }
}

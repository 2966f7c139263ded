//! Objects whose pages go to the VM's swap space: shared anonymous memory.

use super::{Backing, Elsewhere, Object, ObjectRef, Slots};
use crate::error::Error;
use crate::swap::SwapSpace;
use crate::system::System;
use crate::vm::Vm;
use alloc::sync::Arc;
use machine::{Frame, PagerError, Platform};

impl<S: System> Vm<S> {
    /// Shared anonymous memory of `bytes` bytes, in the swap space when memory is short. Its
    /// size is charged to the account of swap space as long as it lives
    /// ([`Error::OverCommit`]).
    pub fn shared_memory(self: &Arc<Self>, bytes: u64) -> Result<ObjectRef<S>, Error> {
        Object::make(self, Backing::Anonymous(Elsewhere::SwapSpace), bytes, true)
    }

    /// Memory like [`Vm::shared_memory`] that is charged to no account.
    pub fn uncharged_memory(self: &Arc<Self>, bytes: u64) -> Result<ObjectRef<S>, Error> {
        Object::make(self, Backing::Anonymous(Elsewhere::SwapSpace), bytes, false)
    }
}

impl<S: System> Object<S> {
    /// The slots to which its pages may go.
    pub(super) fn slots(&self) -> Option<&dyn Slots<S::Machine>> {
        match &self.backing {
            Backing::Store(_) | Backing::Anonymous(Elsewhere::Nowhere) => None,
            Backing::Anonymous(Elsewhere::SwapSpace) => {
                let space: &dyn Slots<S::Machine> = self.vm.swap_space()?;
                Some(space)
            }
            Backing::Anonymous(Elsewhere::Slots(slots)) => Some(&**slots),
        }
    }
}

/// A slot of an object is reserved: it has one reference, and no part in the cache. The object
/// finds its pages by itself, and lets one task at a time read.
impl<M: Platform> Slots<M> for SwapSpace<M> {
    unsafe fn read(&self, machine: &M, slot: u32, frame: Frame) -> Result<(), PagerError> {
        // SAFETY: so says the caller.
        unsafe { SwapSpace::read(self, machine, slot, &[frame]) }
    }

    unsafe fn free(&self, slot: u32) {
        let cached = self.release(slot);
        debug_assert!(cached.is_none(), "an object's slot has no cache");
    }
}

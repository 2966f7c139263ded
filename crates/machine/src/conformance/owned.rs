//! A machine whose frames are the suite's.

use crate::{Asid, Frame, Memory, Mmu, PageFault, Pager, PagerError};
use alloc::sync::Arc;
use core::ops::Deref;
use core::sync::atomic::Ordering;

/// A machine whose frames are the suite's, until the last handle is dropped. The checks may touch
/// all of them, and translate by the tables that they make there.
pub(super) struct Owned<M: Memory>(Arc<Claim<M>>);

struct Claim<M: Memory>(M);

impl<M: Memory> Drop for Claim<M> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `Owned::new`.
        self.0.owned().store(false, Ordering::Release);
    }
}

impl<M: Memory> Clone for Owned<M> {
    fn clone(&self) -> Self {
        Owned(self.0.clone())
    }
}

impl<M: Memory> Deref for Owned<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0.0
    }
}

impl<M: Memory + Clone> Owned<M> {
    /// Takes the machine's memory for the suite.
    pub(super) fn new(m: &M) -> Self {
        let had = m.owned().swap(true, Ordering::AcqRel);
        assert!(!had, "a VM, or another check, uses the machine's memory");
        Owned(Arc::new(Claim(m.clone())))
    }
}

impl<M: Memory> Owned<M> {
    pub(super) fn word(&self, frame: Frame, index: usize) -> &M::AtomicU64 {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).word(frame, index) }
    }

    pub(super) fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).find_word(frame, first, end, mask) }
    }

    pub(super) fn read_bytes(&self, frame: Frame, at: usize, bytes: &mut [u8]) {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).read_bytes(frame, at, bytes) };
    }

    pub(super) fn write_bytes(&self, frame: Frame, at: usize, bytes: &[u8]) {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).write_bytes(frame, at, bytes) };
    }

    pub(super) fn zero(&self, frame: Frame) {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).zero(frame) };
    }

    pub(super) fn copy(&self, from: Frame, to: Frame) {
        // SAFETY: the frames are the suite's.
        unsafe { (**self).copy(from, to) };
    }

    /// Reads pages of a store.
    pub(super) fn fill_from<P: Pager<M> + ?Sized>(
        &self,
        pager: &P,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        // SAFETY: the frames are the suite's.
        unsafe { pager.read(self, first, frames) }
    }

    /// Writes pages to a store.
    pub(super) fn keep_in<P: Pager<M> + ?Sized>(
        &self,
        pager: &P,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        // SAFETY: the frames are the suite's.
        unsafe { pager.write(self, first, frames, bytes) }
    }
}

impl<M: Mmu> Owned<M> {
    pub(super) fn activate(&self, root: Frame, asid: Asid) {
        // SAFETY: the suite makes its tables in its frames; they are tables until another check
        // makes its own, and by then no CPU translates by them.
        unsafe { (**self).activate(root, asid) };
    }

    pub(super) fn load(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: a CPU of a check translates by the check's tables, or by none.
        unsafe { (**self).load(address) }
    }

    pub(super) fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        // SAFETY: as in `load`.
        unsafe { (**self).store(address, value) }
    }

    pub(super) fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: as in `load`.
        unsafe { (**self).fetch(address) }
    }
}

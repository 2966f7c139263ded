//! Shared parts of the tests of swap space: pages that are counted, and nothing else.
#![allow(dead_code)] // each test uses a part

use machine::{Atomic, AtomicInt, Frame, Machine, Memory, Ordering, Pager, PagerError};
use std::marker::PhantomData;

/// References of pages, by frame; as `vm::Page` counts them.
pub struct Pages<M: Machine>(Box<[M::AtomicU32]>);

/// An owner of pages, which does something with the frames of those that are freed.
pub trait Owner<M: Machine> {
    fn pages(&self) -> &Pages<M>;
    fn freed(&self, frame: Frame);

    /// Drops a reference of a page, and frees it with the last.
    fn drop_page(&self, frame: Frame) {
        if self.pages().release(frame) {
            self.freed(frame);
        }
    }

    /// A reference of a page, unless there is none.
    fn hold(&self, frame: Frame) -> Option<Hold<'_, M, Self>> {
        self.pages().try_retain(frame).then(|| Hold {
            owner: self,
            frame,
            machine: PhantomData,
        })
    }
}

/// A reference; released when dropped.
pub struct Hold<'a, M: Machine, O: Owner<M> + ?Sized> {
    owner: &'a O,
    pub frame: Frame,
    machine: PhantomData<fn() -> M>,
}

impl<M: Machine, O: Owner<M> + ?Sized> Drop for Hold<'_, M, O> {
    fn drop(&mut self) {
        self.owner.drop_page(self.frame);
    }
}

impl<M: Machine> Pages<M> {
    pub fn new(frames: usize) -> Self {
        Pages((0..frames).map(|_| M::AtomicU32::new(0)).collect())
    }

    /// The caller's frame becomes a page with `references` references.
    pub fn begin(&self, frame: Frame, references: u32) {
        assert_eq!(self.references(frame), 0, "somebody has {frame:?}");
        self.0[frame.index()].store(references, Ordering::Release);
    }

    pub fn references(&self, frame: Frame) -> u32 {
        self.0[frame.index()].load(Ordering::Acquire)
    }

    pub fn retain(&self, frame: Frame) {
        let old = self.0[frame.index()].fetch_add(1, Ordering::Relaxed);
        assert!(old > 0, "a page without references is retained");
    }

    /// Adds a reference unless there is none.
    fn try_retain(&self, frame: Frame) -> bool {
        let references = &self.0[frame.index()];
        let mut now = references.load(Ordering::Relaxed);
        while now != 0 {
            match references.compare_exchange(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Drops `count` references if there are no others.
    pub fn freeze(&self, frame: Frame, count: u32) -> bool {
        self.0[frame.index()]
            .compare_exchange(count, 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Drops a reference. Returns true if it was the last.
    fn release(&self, frame: Frame) -> bool {
        let old = self.0[frame.index()].fetch_sub(1, Ordering::AcqRel);
        assert!(old > 0, "a page is released twice");
        old == 1
    }
}

/// A pager for tests that do not read or write.
pub struct NoPager;

impl<M: Memory> Pager<M> for NoPager {
    unsafe fn read(&self, _: &M, _: u64, _: &[Frame]) -> Result<(), PagerError> {
        Err(PagerError { errno: 5 })
    }

    unsafe fn write(&self, _: &M, _: u64, _: &[Frame], _: usize) -> Result<(), PagerError> {
        Err(PagerError { errno: 5 })
    }
}

//! Finding an object's page.

use super::Object;
use super::entry::{Entry, Value};
use crate::error::Error;
use crate::system::System;
use crate::vm::Vm;
use core::mem;
use core::ops::Range;
use machine::{Atomics, Frame, Memory};

/// The order in which the caller probably uses pages, so that the next ones may be read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pattern {
    /// The neighbours: up to 16 pages around.
    #[default]
    Normal,
    /// The following pages: up to 16 from this one on.
    Sequential,
    /// Only this page: no others can be predicted.
    Random,
}

/// A counted reference to a page. It borrows the VM, unlike [`crate::Hold`], so that taking one
/// writes nothing but the page's descriptor.
#[must_use = "the page is released when this is dropped"]
pub struct PageRef<'a, S: System> {
    vm: &'a Vm<S>,
    frame: Frame,
}

impl<'a, S: System> PageRef<'a, S> {
    /// Takes over a reference to the page in `frame`.
    pub(crate) fn new(vm: &'a Vm<S>, frame: Frame) -> Self {
        machine::invariant!(
            S::Machine: vm.page(frame).references() > 0,
            "a reference is taken over that there is not"
        );
        PageRef { vm, frame }
    }

    /// The page's frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// The page's `index`-th word, of [`machine::WORDS_PER_FRAME`].
    ///
    /// # Panics
    /// If there is none.
    pub fn word(&self, index: usize) -> &<S::Machine as Atomics>::AtomicU64 {
        // SAFETY: the page is held.
        unsafe { self.vm.machine().word(self.frame, index) }
    }

    /// Checks that the page is one of `vm`'s.
    ///
    /// # Panics
    /// If it is another VM's.
    #[track_caller]
    pub(super) fn check(&self, vm: &Vm<S>) {
        assert!(core::ptr::eq(self.vm, vm), "the page is another VM's");
    }

    /// The page's frame; the reference is the caller's from now on.
    pub(crate) fn into_frame(self) -> Frame {
        mem::ManuallyDrop::new(self).frame
    }
}

impl<S: System> Drop for PageRef<'_, S> {
    fn drop(&mut self) {
        self.vm.release_page(self.frame);
    }
}

impl<S: System> Vm<S> {
    /// Takes a reference that keeps the page from being freed; `None` if it has been.
    pub fn page_ref(&self, frame: Frame) -> Option<PageRef<'_, S>> {
        self.retain_page(frame).then(|| PageRef::new(self, frame))
    }
}

impl<S: System> Object<S> {
    /// A reference to the page at `index` if it is in memory. Waits for nothing, so the caller may
    /// hold the lock of a slot. [`Error::Bus`] behind the object's end.
    pub(crate) fn page_in_memory(&self, index: u64) -> Result<Option<PageRef<'_, S>>, Error> {
        if index >= self.pages() {
            return Err(Error::Bus { page: index });
        }
        Ok(self.tree.find(index).and_then(|entry| self.look_up(entry)))
    }

    /// The frame of the page at `index`, if the object shows one, as of a moment ago; not retained.
    /// [`Error::Bus`] behind the object's end.
    pub(crate) fn shown(&self, index: u64) -> Result<Option<Frame>, Error> {
        if index < self.pages() {
            Ok(self.resident(index))
        } else {
            Err(Error::Bus { page: index })
        }
    }

    /// The shown pages of `range`, each with its index; none behind the end.
    pub(crate) fn all_shown(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Frame)> {
        let end = range.end.min(self.pages());
        let entries = self.tree.entries(range.start..end);
        entries.filter_map(|(index, entry)| Some((index, entry.value().frame()?)))
    }

    /// A reference to the page at `index`; if it is not in memory, it is read in, or made, with
    /// neighbours as `pattern` says.
    ///
    /// [`Error::Bus`] behind the object's end, [`Error::Io`] if the store fails; then, and
    /// without memory, nothing has changed. O(levels) if the page is in memory; otherwise it may
    /// sleep, so the caller holds no lock of a slot and no spin lock.
    pub fn page(&self, index: u64, pattern: Pattern) -> Result<PageRef<'_, S>, Error> {
        self.page_within(index, pattern, || self.pages())
    }

    /// A reference to the page at an index of an object that has `pages` pages, a number that a
    /// caller which changes the size knows.
    pub(super) fn page_within(
        &self,
        index: u64,
        pattern: Pattern,
        pages: impl Fn() -> u64,
    ) -> Result<PageRef<'_, S>, Error> {
        loop {
            if index >= pages() {
                return Err(Error::Bus { page: index });
            }
            let entry = self.tree.make(index, self.erased())?;
            if let Some(page) = self.look_up(entry) {
                return Ok(page);
            }
            match entry.try_own(|value| !matches!(value, Value::Frame(_))) {
                Some(owned) => return self.fill(index, owned, pattern, &pages),
                None => entry.wait(),
            }
        }
    }

    /// A reference to the entry's page, if it has one that is not being taken away.
    #[inline]
    pub(super) fn look_up(&self, entry: &Entry<S::Machine>) -> Option<PageRef<'_, S>> {
        let Value::Frame(frame) = entry.value() else {
            return None;
        };
        if !self.vm.page(frame).try_retain() {
            return None;
        }
        let page = PageRef::new(&self.vm, frame);
        // Again: it may have become another page before it was retained.
        (entry.value() == Value::Frame(frame)).then_some(page)
    }
}

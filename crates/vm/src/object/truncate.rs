//! Changing an object's size: to a requested one, and by writing behind its end.

use super::entry::{Entry, Value};
use super::page::Pattern;
use super::{Backing, MAX_PAGES, Object, PageRef, Resize, bytes, check_size};
use crate::error::Error;
use crate::page::Identity;
use crate::system::System;
use crate::vm::Hold;
use core::mem;
use core::ops::Range;
use machine::{Atomic, Atomics, Frame, Memory, Ordering, PAGE_SIZE};

impl<S: System> Object<S> {
    /// Truncates; a lack of frames is an error at once.
    pub(crate) fn try_truncate(
        &self,
        size: u64,
        remove: &mut impl FnMut(&Hold<S>),
    ) -> Result<(), Error> {
        check_size(size)?;
        let mut resize = self.resize.lock();
        let old = self.size();
        if size >= old {
            let growth = self.charge(size)?;
            let _tail = self.prepare_to_grow(&mut resize)?;
            // Publish: pairs with `Object::size`; the bytes it adds are zero.
            self.size.publish(size);
            growth.keep();
            return Ok(());
        }
        let _tail = self.tail(size)?;
        if let Backing::Store(_) = self.backing {
            resize.cut = Some(resize.cut.map_or(size, |cut| cut.min(size)));
            // Relaxed: the size is published behind it.
            self.is_cut_due.store(1, Ordering::Relaxed);
        }
        // Then a fence: a task that owns an entry from here on sees the size, and one that owned
        // one before is seen below. Pairs with those in `fill` and `write_back`.
        self.size.publish(size);
        machine::invariant!(
            S::Machine: self.size() == size,
            "the size changes under another task's lock"
        );
        let cut = size.div_ceil(PAGE_SIZE as u64);
        for (_, entry) in self.tree.entries(cut..u64::MAX) {
            self.take_away(entry, remove);
        }
        self.zero_tail(size);
        self.uncharge(old, size);
        Ok(())
    }

    /// Writes `part`, which lies in one page and partly behind the object's end.
    #[cold]
    pub(crate) fn append(&self, at: u64, part: &[u8]) -> Result<(), Error> {
        debug_assert!(
            !part.is_empty() && in_page(at) + part.len() <= PAGE_SIZE,
            "one page has not all that is appended"
        );
        let mut resize = self.resize.lock();
        let end = at + part.len() as u64;
        let grows = end > self.size();
        let growth = self.charge(end)?;
        let _tail = if grows {
            self.prepare_to_grow(&mut resize)?
        } else {
            None
        };
        // No other task changes the size, and none finds the page before that.
        let pages = end.div_ceil(PAGE_SIZE as u64).max(self.pages());
        let page = self.page_within(at / PAGE_SIZE as u64, Pattern::Normal, || pages)?;
        self.fill_in(&page, at, part);
        if grows {
            // Publish: pairs with `Object::size`; the bytes it adds are there.
            self.size.publish(end);
        }
        growth.keep();
        Ok(())
    }

    /// Copies to a page, and then marks it dirty, not before: a task that cleans it in between
    /// would miss bytes.
    pub(crate) fn fill_in(&self, page: &PageRef<'_, S>, at: u64, part: &[u8]) {
        debug_assert!(
            in_page(at) + part.len() <= PAGE_SIZE,
            "one page has not all that is written"
        );
        let machine = self.vm.machine();
        // SAFETY: the caller holds the page.
        unsafe { machine.write_bytes(page.frame(), in_page(at), part) };
        self.mark_dirty(page.frame());
    }

    /// Prepares for [`Object::punch`] of `pages`; an error has changed nothing. O(pages) for a
    /// file.
    pub(crate) fn prepare_to_punch(&self, pages: Range<u64>) -> Result<(), Error> {
        if pages.end > MAX_PAGES {
            return Err(Error::TooFar { page: MAX_PAGES });
        }
        if let Backing::Anonymous(_) = self.backing {
            return Ok(());
        }
        let mut inside = pages.start..pages.end.min(self.pages());
        inside.try_for_each(|index| self.tree.make(index, self.erased()).map(drop))
    }

    /// Makes the object's `pages`, which are prepared, zero. For anonymous memory it takes away the
    /// pages in memory, as [`Object::truncate`] does, and those in the swap space. For a file it
    /// zeroes the pages in memory, and writes `zeroes`, a page, to the store for the others:
    /// O(pages).
    ///
    /// [`Error::Io`] if the store fails; then some of the pages may be zero.
    pub(crate) fn punch(
        &self,
        pages: Range<u64>,
        zeroes: Frame,
        mut remove: impl FnMut(&Hold<S>),
    ) -> Result<(), Error> {
        let Backing::Store(store) = &self.backing else {
            for (_, entry) in self.tree.entries(pages) {
                self.take_away(entry, &mut remove);
            }
            return Ok(());
        };
        for (index, entry) in self.tree.entries(pages) {
            let owned = entry.own();
            if let Value::Frame(frame) = owned.value {
                // SAFETY: the object's page, which stays while its entry is owned.
                unsafe { bytes::zero_from(self.vm.machine(), frame, 0) };
                // Not before: a task that cleans it in between would miss bytes.
                self.mark_dirty(frame);
                continue;
            }
            // Pairs with the fence in `truncate`, which waits for the owner if this sees an older
            // size.
            S::Machine::fence(Ordering::SeqCst);
            let inside = self.size().saturating_sub(index * PAGE_SIZE as u64);
            let count = inside.min(PAGE_SIZE as u64) as usize;
            if count > 0 {
                // SAFETY: `zeroes` is the caller's page.
                let written = unsafe { store.write(self.vm.machine(), index, &[zeroes], count) };
                written.map_err(Error::Io)?;
            }
        }
        Ok(())
    }

    /// Makes the bytes behind the object's end zero, in memory and in the store, as long as the
    /// result is kept and the size does not change.
    pub(super) fn prepare_to_grow(
        &self,
        resize: &mut Resize,
    ) -> Result<Option<PageRef<'_, S>>, Error> {
        machine::invariant!(
            S::Machine: self.resize.is_locked(),
            "an object grows from a size that may change"
        );
        let size = self.size();
        let tail = self.tail(size)?;
        self.settle(resize)?;
        // Tasks may have written behind the end of the last page.
        self.zero_tail(size);
        Ok(tail)
    }

    /// Reads the page that `size` divides from the swap space, if it is there; it stays in memory
    /// as long as the result is kept.
    fn tail(&self, size: u64) -> Result<Option<PageRef<'_, S>>, Error> {
        if !self.has_slots() || size.is_multiple_of(PAGE_SIZE as u64) {
            return Ok(None);
        }
        let index = size / PAGE_SIZE as u64;
        self.page(index, Pattern::Random).map(Some)
    }

    /// Zeroes the bytes behind `size` in the page that it divides, if that is in memory; waits
    /// while it is being read or written.
    fn zero_tail(&self, size: u64) {
        let (index, from) = (size / PAGE_SIZE as u64, size % PAGE_SIZE as u64);
        if from != 0
            && let Some(entry) = self.tree.find(index)
            && let Value::Frame(frame) = entry.own().value
        {
            // SAFETY: the object's page, which stays while its entry is owned.
            unsafe { bytes::zero_from(self.vm.machine(), frame, from as usize) };
        }
    }

    /// Empties an entry, as "take away" in the protocol says.
    pub(super) fn take_away(&self, entry: &Entry<S::Machine>, remove: &mut impl FnMut(&Hold<S>)) {
        if entry.is_vacant() {
            return;
        }
        let mut owned = entry.own();
        match mem::replace(&mut owned.value, Value::Absent) {
            Value::Absent => {}
            Value::Slot(slot) => {
                drop(owned);
                self.free_slot(slot);
            }
            Value::Frame(frame) => {
                let hold = self.vm.hold(frame).expect("an owned entry keeps its page");
                let hold = hold.with_entry(owned.address());
                owned.hide();
                let page = self.vm.page(frame);
                let mut list = self.vm.lock_pv(frame);
                machine::invariant!(
                    S::Machine: page.identity() == Identity::Object(owned.address()),
                    "an entry has a page that is another's"
                );
                page.set_identity(Identity::Private);
                // No reclaimer takes it for private memory and puts a slot in its mappings' place.
                list.begin_laundry();
                drop(list);
                remove(&hold);
                self.vm.release_page(frame);
            }
        }
    }

    /// Returns true if pages may be in a swap space.
    pub(crate) fn has_slots(&self) -> bool {
        self.slots().is_some()
    }

    fn free_slot(&self, slot: u32) {
        let slots = self.slots().expect("a slot is of some slots");
        // SAFETY: the entry that named the slot does so no more.
        unsafe { slots.free(slot) };
    }
}

/// The offset of byte `at` in its page.
pub(crate) fn in_page(at: u64) -> usize {
    (at % PAGE_SIZE as u64) as usize
}

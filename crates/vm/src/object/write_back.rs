//! Writing dirty pages to the store.

use super::entry::{Owned, Value};
use super::{Backing, Home, Object, Resize};
use crate::error::Error;
use crate::page::{Identity, Page};
use crate::system::System;
use crate::vm::Hold;
use core::array;
use core::ops::Range;
use machine::{Atomic, Atomics, Frame, Ordering, PAGE_SIZE, Truncate};

/// The most pages that are written at once.
const RUN: usize = 32;

/// Adjacent dirty pages, marked clean, whose entries are owned until they are written.
struct Cluster<'a, S: System> {
    object: &'a Object<S>,
    store: &'a dyn Truncate<S::Machine>,
    first: u64,
    frames: [Frame; RUN],
    owned: [Option<Owned<'a, S::Machine>>; RUN],
    len: usize,
}

impl<S: System> Object<S> {
    /// Writes the dirty pages in `range` to the store, neighbours together, and nothing behind the
    /// object's end. All that was dirty before the call is in the store after it.
    ///
    /// `clean` takes a page's dirtiness from all its mappings, and returns true if there was any:
    /// from then on a task that writes the page makes it dirty again. It may lock slots. The page's
    /// own flag is taken here.
    ///
    /// An error is the first of perhaps several; pages not written are still dirty. O(leaves +
    /// pages in memory). Sleeps while a page is being read, written or evicted by others.
    pub fn write_back(
        &self,
        range: Range<u64>,
        clean: impl FnMut(&Hold<S>) -> bool,
    ) -> Result<(), Error> {
        // Acquire: pairs with the release in `settle`, after which the cut is done. Most calls find
        // it done, and write no line of each other's.
        let settled = match self.is_cut_due.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => self.settle(&mut self.resize.lock()),
        };
        let written = self.write_dirty(range, clean);
        settled.and(written)
    }

    /// Writes dirty pages back, without telling the store of a cut that it has not seen.
    pub(super) fn write_dirty(
        &self,
        range: Range<u64>,
        mut clean: impl FnMut(&Hold<S>) -> bool,
    ) -> Result<(), Error> {
        let Backing::Store(store) = &self.backing else {
            return Ok(());
        };
        let mut result = Ok(());
        let mut run = Cluster::new(self, &**store);
        for (index, entry) in self.tree.entries(range) {
            if !run.takes(index) {
                result = result.and(run.write());
            }
            // The value is no guide: an eviction hides its page while it looks for a mapping of it,
            // and keeps the page if it finds one, which may have made it dirty.
            if entry.is_vacant() {
                continue;
            }
            let owned = entry.try_own(is_resident).unwrap_or_else(|| {
                // No task waits for this run while it waits for another.
                result = result.and(run.write());
                entry.own()
            });
            run.add_if_dirty(index, owned, &mut clean);
        }
        result.and(run.write())
    }

    /// Cuts the store to the smallest size that the object has had since the last cut, if that is
    /// still to be done. Done before the object grows; otherwise the bytes cut off would reappear.
    pub(super) fn settle(&self, resize: &mut Resize) -> Result<(), Error> {
        if let Backing::Store(store) = &self.backing
            && let Some(bytes) = resize.cut
        {
            let cut = store.truncate(self.vm.machine(), bytes);
            cut.map_err(Error::Io)?;
            resize.cut = None;
            self.is_cut_due.store(0, Ordering::Release);
        }
        Ok(())
    }
}

impl<S: System> Home<'_, S> {
    /// Writes the page to the store if it is dirty, and dirty neighbours behind it with it,
    /// as [`Object::write_back`] does. Waits for no task. An anonymous page stays as it is.
    pub fn write_back(self, mut clean: impl FnMut(&Hold<S>) -> bool) -> Result<(), Error> {
        let (index, object) = (self.index(), self.object_pointer());
        // SAFETY: the object stays while one of its entries is owned: until the run is
        // written. Nothing is done with it after that.
        let object = unsafe { object.as_ref() };
        let Backing::Store(store) = &object.backing else {
            return Ok(());
        };
        let mut run = Cluster::new(object, &**store);
        let mut added = run.add_if_dirty(index, self.owned, &mut clean);
        let mut next = index + 1;
        while added && run.takes(next) {
            let entry = object.tree.find(next);
            let owned = entry.and_then(|entry| entry.try_own(is_resident));
            added = owned.is_some_and(|owned| run.add_if_dirty(next, owned, &mut clean));
            next += 1;
        }
        run.write()
    }
}

fn is_resident(value: Value) -> bool {
    matches!(value, Value::Frame(_))
}

impl<'a, S: System> Cluster<'a, S> {
    fn new(object: &'a Object<S>, store: &'a dyn Truncate<S::Machine>) -> Self {
        Cluster {
            object,
            store,
            first: 0,
            frames: [Frame(0); RUN],
            owned: array::from_fn(|_| None),
            len: 0,
        }
    }

    /// Returns true if the page at `index` can be added.
    fn takes(&self, index: u64) -> bool {
        self.len == 0 || (self.len < RUN && index == self.first + self.len as u64)
    }

    /// Takes the page's dirtiness and adds it if there was any; or releases its entry.
    fn add_if_dirty(
        &mut self,
        index: u64,
        owned: Owned<'a, S::Machine>,
        clean: &mut impl FnMut(&Hold<S>) -> bool,
    ) -> bool {
        let Value::Frame(frame) = owned.value else {
            return false;
        };
        debug_assert!(
            self.takes(index),
            "pages are written that are no neighbours"
        );
        let vm = &self.object.vm;
        machine::invariant!(
            S::Machine: vm.page(frame).identity() == Identity::Object(owned.address()),
            "an entry has a page that is another's"
        );
        let hold = vm.hold(frame).expect("an owned entry keeps its page");
        let hold = hold.with_entry(owned.address());
        // First the page's own flag: a page that is marked dirty while `clean` waits for the tasks
        // that unmap it may still be written through their translations.
        let own = {
            let dirty = Page::<S>::DIRTY;
            vm.lock_pv(frame).take_flags(dirty) != 0
        };
        let mapped = clean(&hold);
        if !(mapped || own) {
            return false;
        }
        if self.len == 0 {
            self.first = index;
        }
        self.frames[self.len] = frame;
        self.owned[self.len] = Some(owned);
        self.len += 1;
        true
    }

    /// Writes the pages and releases their entries; pages not written are dirty again.
    fn write(&mut self) -> Result<(), Error> {
        if self.len == 0 {
            return Ok(());
        }
        // Pairs with the fence in `truncate`, which waits for the pages if this sees an
        // older size.
        S::Machine::fence(Ordering::SeqCst);
        let inside = self
            .object
            .size()
            .saturating_sub(self.first * PAGE_SIZE as u64);
        let bytes = inside.min((self.len * PAGE_SIZE) as u64) as usize;
        let count = bytes.div_ceil(PAGE_SIZE);
        debug_assert!(
            self.owned[..self.len].iter().all(Option::is_some),
            "pages are written that are not owned"
        );
        let machine = self.object.vm.machine();
        let result = match &self.frames[..count] {
            [] => Ok(()),
            // SAFETY: pages of the object, which stay while their entries are owned.
            frames => unsafe { self.store.write(machine, self.first, frames, bytes) },
        };
        let written = if result.is_ok() { count } else { 0 };
        for &frame in &self.frames[written..self.len] {
            self.object.mark_dirty(frame);
        }
        self.owned[..self.len].fill_with(|| None);
        self.len = 0;
        result.map_err(Error::Io)
    }
}

/// Pages whose dirtiness has been taken are not forgotten if the caller panics.
impl<S: System> Drop for Cluster<'_, S> {
    fn drop(&mut self) {
        for &frame in &self.frames[..self.len] {
            self.object.mark_dirty(frame);
        }
    }
}

impl<S: System> Object<S> {
    /// Returns true if the page at `index` is in memory and dirty.
    pub fn is_dirty(&self, index: u64) -> bool {
        let flags = |frame| self.vm.page(frame).flags();
        self.resident(index)
            .is_some_and(|frame| flags(frame) & Page::<S>::DIRTY != 0)
    }
}

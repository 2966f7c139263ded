//! Finds a page's object, for a reclaimer.

use super::entry::{Owned, Value};
use super::leaf::Leaf;
use super::{Object, PageRef};
use crate::page::{Identity, Page};
use crate::system::System;
use crate::vm::Vm;
use core::num::NonZeroUsize;
use core::ptr::NonNull;
use machine::Frame;

/// The place of a page in its object, owned: until it is dropped no other task takes the
/// page away or writes it out, and the object stays.
pub struct Home<'a, S: System> {
    vm: &'a Vm<S>,
    page: &'a PageRef<'a, S>,
    pub(super) owned: Owned<'a, S::Machine>,
    leaf: *const Leaf<S::Machine>,
}

/// References of a page that only its object and the caller have.
const TWO: u32 = 2;

impl<S: System> Vm<S> {
    /// The place of the page in its object, if it has one and no other task is busy with it. O(1).
    ///
    /// The caller holds no PV lock.
    ///
    /// # Panics
    /// If the page is another VM's.
    pub fn home<'a>(&'a self, held: &'a PageRef<'a, S>) -> Option<Home<'a, S>> {
        held.check(self);
        let page = self.page(held.frame());
        let list = self.lock_pv(held.frame());
        let Identity::Object(address) = page.identity() else {
            return None;
        };
        let leaf = Leaf::<S::Machine>::of(address);
        // SAFETY: the leaf is there: before it goes the page's identity changes, and that
        // takes the PV lock, which is held.
        let entry = unsafe { &*leaf }.entry_at(address);
        let owned = entry.try_own(|value| value == Value::Frame(held.frame()))?;
        drop(list);
        Some(Home {
            vm: self,
            page: held,
            owned,
            leaf,
        })
    }
}

impl<'a, S: System> Home<'a, S> {
    /// The object.
    pub fn object(&self) -> &Object<S> {
        // SAFETY: the object stays while one of its entries is owned.
        unsafe { self.object_pointer().as_ref() }
    }

    pub(super) fn object_pointer(&self) -> NonNull<Object<S>> {
        // SAFETY: the leaf stays while one of its entries is owned. Pages of this VM are in
        // objects of this VM.
        unsafe { (*self.leaf).object }.cast()
    }

    /// The address of its entry.
    pub(crate) fn entry(&self) -> NonZeroUsize {
        self.owned.address()
    }

    /// The page's index in the object.
    pub fn index(&self) -> u64 {
        // SAFETY: the leaf stays while one of its entries is owned.
        unsafe { (*self.leaf).index_at(self.owned.address()) }
    }

    /// Takes the page out of the object and leaves `slot` of the swap space, or nothing, in its
    /// place, if it is clean, held by the caller only, and `is_unmapped` returns true; that is
    /// called when no task can find the page in its entry any more.
    ///
    /// # Panics
    /// If there is a slot, and the object has no swap space.
    pub(crate) fn vacate(
        mut self,
        slot: Option<u32>,
        is_unmapped: impl FnOnce(&Vm<S>, &Object<S>, u64, Frame) -> bool,
    ) -> bool {
        let has_room = slot.is_none() || self.object().has_slots();
        assert!(has_room, "a page swapped out from nowhere");
        let frame = self.page.frame();
        let page = self.vm.page(frame);
        let is_dirty = || page.flags() & Page::<S>::DIRTY != 0;
        if is_dirty() || page.references() != TWO {
            return false;
        }
        debug_assert!(
            self.owned.value == Value::Frame(frame),
            "another page is at home here"
        );
        machine::invariant!(
            S::Machine: page.identity() == Identity::Object(self.owned.address()),
            "the page is at home elsewhere"
        );
        // From here until it is dropped, `owned` shows nothing; then its `value`.
        self.owned.hide();
        if !is_unmapped(self.vm, self.object(), self.index(), frame) || !page.freeze(TWO) {
            return false;
        }
        // Only this caller has the page, so the flags are as all others left them.
        if is_dirty() {
            page.thaw(TWO);
            return false;
        }
        self.owned.value = slot.map_or(Value::Absent, Value::Slot);
        drop(self.owned);
        // Only now, when no task can find the frame in the entry any more: a lookup that
        // still has its number must not retain it before it looks again.
        page.begin();
        true
    }
}

/// The object of the entry at this address, and the entry's index.
///
/// # Safety
/// The caller owns the entry, which is of an object with these policies, as long as the object is
/// used.
pub(crate) unsafe fn entry_of<'a, S: System>(entry: NonZeroUsize) -> (&'a Object<S>, u64) {
    // SAFETY: the leaf and the object stay while one of its entries is owned.
    unsafe {
        let leaf = &*Leaf::<S::Machine>::of(entry);
        (leaf.object.cast().as_ref(), leaf.index_at(entry))
    }
}

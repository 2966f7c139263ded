//! From a page back to its object: what a reclaimer does.

use super::entry::{Content, Owned};
use super::leaf::Leaf;
use super::{Object, PageRef};
use crate::page::{Identity, Page};
use crate::policy::Policies;
use crate::vm::Vm;
use core::ptr::NonNull;
use machine::Platform;

/// The place of a page in its object, owned: until it is dropped nobody else takes the
/// page away or writes it out, and the object stays.
pub struct Home<'a, M: Platform, P: Policies<M>> {
    vm: &'a Vm<M, P>,
    page: &'a PageRef<'a, M, P>,
    pub(super) owned: Owned<'a, M>,
    leaf: *const Leaf<M>,
}

/// References of a page that only its object and the caller have.
const TWO: u32 = 2;

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// The place of the page in its object, if it has one and no other task is busy with it. O(1).
    ///
    /// The caller holds no PV lock.
    pub fn home<'a>(&'a self, held: &'a PageRef<'a, M, P>) -> Option<Home<'a, M, P>> {
        let page = self.page(held.frame());
        let list = self.lock_pv(held.frame());
        let Identity::Object(address) = page.identity() else {
            return None;
        };
        let leaf = Leaf::<M>::of(address);
        // SAFETY: the leaf is there: before it goes the page's identity changes, and that
        // takes the PV lock, which is held.
        let entry = unsafe { &*leaf }.entry_at(address);
        let owned = entry.try_own(|content| content == Content::Frame(held.frame()))?;
        drop(list);
        Some(Home {
            vm: self,
            page: held,
            owned,
            leaf,
        })
    }
}

impl<'a, M: Platform, P: Policies<M>> Home<'a, M, P> {
    /// The object.
    pub fn object(&self) -> &Object<M, P> {
        // SAFETY: the object stays while one of its entries is owned.
        unsafe { self.object_pointer().as_ref() }
    }

    pub(super) fn object_pointer(&self) -> NonNull<Object<M, P>> {
        // SAFETY: the leaf stays while one of its entries is owned. Pages of this VM are in
        // objects of this VM.
        unsafe { (*self.leaf).object }.cast()
    }

    /// The page's index in the object.
    pub fn index(&self) -> u64 {
        // SAFETY: the leaf stays while one of its entries is owned.
        unsafe { (*self.leaf).index_at(self.owned.address()) }
    }

    /// Takes the page out of the object, if it is clean, unmapped and held by nobody but
    /// the caller: then it is the caller's alone, and the frame is free when that hold is dropped.
    ///
    /// Clean is a page without [`Page::DIRTY`]: the task that removed the mappings has put back
    /// what [`Vm::remove_all`] handed over. An anonymous page that is clean is zero.
    #[must_use = "the page may still be the object's"]
    pub fn evict(self) -> bool {
        self.replace(Content::Absent)
    }

    /// As [`Home::evict`], and leaves `slot` of the swap space in the page's place, to
    /// which the caller has written it since it was last dirty. The slot is the object's
    /// if the answer is `true`; then it is read by [`super::Slots`] when it is wanted.
    ///
    /// # Panics
    /// If the object has no swap space.
    #[must_use = "the slot may still be the caller's"]
    pub fn swap_out(self, slot: u32) -> bool {
        assert!(self.object().has_slots(), "a page swapped out from nowhere");
        self.replace(Content::Slot(slot))
    }

    fn replace(mut self, content: Content) -> bool {
        let page = self.vm.page(self.page.frame());
        if !page.freeze(TWO) {
            return false;
        }
        // Only this caller has the page, so the flags are as all others left them.
        if page.flags() & Page::<M, P::Invalidation>::DIRTY != 0 {
            page.thaw(TWO);
            return false;
        }
        self.owned.content = content;
        drop(self.owned);
        // Only now, when nobody can find the frame in the entry any more: a lookup that
        // still has its number must not retain it before it looks again.
        page.begin();
        true
    }
}

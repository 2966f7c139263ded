//! Frees pages one by one: those of objects, which go to their store or to the swap space, and
//! those that their owner has given up, which are not written.

use crate::frames::Content;
use crate::object::{Home, PageRef};
use crate::page::Page;
use crate::pmap::How;
use crate::swap::SwapSpace;
use crate::system::System;
use crate::vm::Vm;

impl<S: System> Vm<S> {
    /// Unmaps an object's page, writes it if it is dirty, and frees it if no task has come to use
    /// it meanwhile. Returns true if it did.
    pub(super) fn evict(&self, held: PageRef<'_, S>) -> bool {
        let Some(home) = self.home(&held) else {
            return false;
        };
        let removed = self.remove_as(held.frame(), Some(home.entry()), How::RECLAIM);
        if removed.is_locked {
            return false;
        }
        let page = self.page(held.frame());
        if page.flags() & Page::<S>::DIRTY == 0 {
            return home.evict();
        }
        if !home.object().is_anonymous() {
            // It may have been mapped and written anew.
            let written = home.write_back(|hold| self.test_modified(hold));
            return written.is_ok() && self.home(&held).is_some_and(Home::evict);
        }
        match self.swap_space() {
            Some(swap) if home.object().has_slots() => self.swap_object(swap, &held, home),
            _ => false,
        }
    }

    /// Writes a page of shared anonymous memory to the swap space.
    fn swap_object(
        &self,
        swap: &SwapSpace<S::Machine>,
        held: &PageRef<'_, S>,
        home: Home<'_, S>,
    ) -> bool {
        let frame = held.frame();
        // The object finds the page, so the slot needs no part in the cache.
        let Some(slot) = swap.reserve() else {
            return false;
        };
        // A store that dirties it from here on is seen at the end.
        let dirty = Page::<S>::DIRTY;
        self.lock_pv(frame).take_flags(dirty);
        // SAFETY: the caller holds the page.
        let written = unsafe { swap.write(self.machine(), slot, &[frame]) }.is_ok();
        // SAFETY: the slot has just been reserved for the page, and has its content.
        if written && unsafe { home.swap_out(slot) } {
            return true;
        }
        self.lock_pv(frame).set_flags(dirty);
        self.release_swapped(slot);
        false
    }

    /// Frees a private page if it is given up and not written since, and returns the number of
    /// frames freed. The page is marked as laundry, and stays the caller's if it must be written.
    pub(super) fn forget<'a>(&'a self, held: PageRef<'a, S>) -> Result<usize, PageRef<'a, S>> {
        let how = How {
            forgets: true,
            ..How::RECLAIM
        };
        let page = self.page(held.frame());
        let lazy = Page::<S>::LAZY;
        if page.flags() & lazy == 0 || self.remove_as(held.frame(), None, how).mappings == 0 {
            return Err(held);
        }
        let frame = held.into_frame();
        // A task with an old hint may hold it for a moment.
        let freed = page.release();
        if freed {
            self.free_page(frame, Content::Any);
        }
        Ok(usize::from(freed))
    }
}

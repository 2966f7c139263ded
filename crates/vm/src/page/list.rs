//! A page's PV list, locked.

use super::Page;
use crate::pv::{Pv, PvHead};
use crate::system::{PvLocking, System};
use core::iter;
use core::mem;
use machine::{Atomic, Atomics, Frame, Ordering, SharedCell};
use sync::RawLock;

/// A page's PV list, locked until this is dropped.
pub(crate) struct PvList<'a, S: System> {
    page: &'a Page<S>,
    by: By<<S::PvLocks as PvLocking<S::Machine>>::Held<'a>>,
}

/// The list of the page in a frame, kept locked for the next page, which may have the same lock.
pub(crate) struct Last<'a, S: System>(pub(crate) PvList<'a, S>, pub(crate) Frame);

/// The lock that keeps a list locked.
enum By<H> {
    /// The list's lock, which observers see. It is released when this is dropped.
    Policy(#[allow(dead_code)] H),
    /// The page's byte, locked together with another page's byte; observers see only that one.
    Byte,
    /// The lock of another page's list, which is also this one's.
    Other,
}

impl<'a, S: System> PvList<'a, S> {
    /// Locks the list of `page`, which is that of `frame`.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(locks: &'a S::PvLocks, frame: Frame, page: &'a Page<S>) -> Self {
        let by = By::Policy(locks.lock(frame, &page.pv_lock));
        PvList { page, by }
    }

    /// Locks the list, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub(crate) fn try_lock(locks: &'a S::PvLocks, frame: Frame, page: &'a Page<S>) -> Option<Self> {
        let by = By::Policy(locks.try_lock(frame, &page.pv_lock)?);
        Some(PvList { page, by })
    }

    /// Locks one more list of a run while the caller has that of another page of it: of a lower
    /// one, or one whose holder waits for none. Each page has a lock of its own. Observers see the
    /// first one only.
    pub(crate) fn lock_more(page: &'a Page<S>) -> Self {
        page.pv_lock.raw().lock();
        PvList { page, by: By::Byte }
    }

    /// Locks one more list of a run, if that needs no waiting.
    pub(crate) fn try_lock_more(page: &'a Page<S>) -> Option<Self> {
        page.pv_lock.raw().try_lock()?;
        Some(PvList { page, by: By::Byte })
    }

    /// The list that [`PvList::keep`] has kept locked.
    ///
    /// # Safety
    /// It is the caller's, and asked for once.
    pub(crate) unsafe fn kept(page: &'a Page<S>) -> Self {
        machine::invariant!(S::Machine: page.pv_lock.is_locked(), "no list was kept locked");
        PvList { page, by: By::Byte }
    }

    /// The list of `page`, whose lock is held with another page's.
    ///
    /// # Safety
    /// The caller keeps that lock as long as this lives, and uses no other list of the page.
    pub(crate) unsafe fn of_other(page: &'a Page<S>) -> Self {
        PvList {
            page,
            by: By::Other,
        }
    }

    /// Passes the lock, which is also that of `page`, to the list of `page`.
    pub(crate) fn pass_to(mut self, page: &'a Page<S>) -> Self {
        debug_assert!(
            matches!(self.by, By::Policy(_)),
            "a list of a run is passed on"
        );
        self.page = page;
        self
    }

    /// Leaves the list, which was locked with others, locked; see [`PvList::kept`].
    pub(crate) fn keep(self) {
        debug_assert!(
            matches!(self.by, By::Byte),
            "only a list of a run is kept locked"
        );
        mem::forget(self);
    }

    /// The page.
    #[inline]
    pub(crate) fn page(&self) -> &'a Page<S> {
        self.page
    }

    fn head(&self) -> &PvHead {
        // SAFETY: the PV lock is held.
        unsafe { &*self.page.pv.read() }
    }

    pub(crate) fn first(&self) -> Option<Pv> {
        self.head().first()
    }

    /// Adds `flags` to the page's.
    pub(crate) fn set_flags(&mut self, flags: u8) {
        self.page.add_flags(flags);
    }

    /// Clears `flags` of the page, and returns those of them that were set. After a task has taken
    /// [`Page::DIRTY`], no other task knows that the page was written.
    pub(crate) fn take_flags(&mut self, flags: u8) -> u8 {
        let now = self.page.flags.load(Ordering::Relaxed);
        let taken = now & flags;
        let lazy = if taken & Page::<S>::DIRTY != 0 {
            Page::<S>::LAZY
        } else {
            0
        };
        self.page
            .flags
            .store(now & !(flags | lazy), Ordering::Relaxed);
        if taken & Page::<S>::DIRTY != 0 {
            // Pairs with the fence in `Page::lacks_after_stores`.
            S::Machine::fence(Ordering::SeqCst);
        }
        taken
    }

    /// Marks the page as [`Page::LAUNDRY`]. Returns false if it is marked already.
    pub(crate) fn begin_laundry(&mut self) -> bool {
        let is_free = self.page.flags() & Page::<S>::LAUNDRY == 0;
        self.set_flags(Page::<S>::LAUNDRY);
        is_free
    }
}

impl<S: System> PvList<'_, S> {
    /// # Safety
    /// The frame of `pv` is there, and `pv` is on no list.
    #[inline]
    pub(crate) unsafe fn insert(&mut self, memory: &S::Machine, pv: Pv) {
        // SAFETY: the PV lock is held; the frame is there and `pv` on no list, as the caller says.
        unsafe { (*self.page.pv.write()).insert(memory, pv) }
    }

    /// # Safety
    /// `pv` is on this list.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, memory: &S::Machine, pv: Pv) {
        // SAFETY: the PV lock is held, and `pv` is on this list, as the caller says.
        unsafe { (*self.page.pv.write()).remove(memory, pv) }
    }

    /// The entries, from the newest on.
    pub(crate) fn iter(&self, memory: &S::Machine) -> impl Iterator<Item = Pv> {
        // SAFETY: the PV lock is held as long as the list is borrowed.
        iter::successors(self.first(), |pv| unsafe { pv.next(memory) })
    }
}

impl<S: System> Drop for PvList<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if let By::Byte = self.by {
            // SAFETY: locked unwatched when this was made.
            unsafe { self.page.pv_lock.raw().unlock(()) };
        }
    }
}

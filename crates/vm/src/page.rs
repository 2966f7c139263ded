//! What the VM keeps for each physical frame.

use crate::lock::PvLock;
use crate::pmap::{Pv, PvHead};
use crate::policy::Invalidation;
use crate::tree::Slot;
use core::mem::ManuallyDrop;
use machine::{Atomic, AtomicInt, Machine, Ordering, SharedCell, pte};
use sync::RawLock;

/// One frame's descriptor: 24 bytes with the default policy, 0.6 % of memory.
pub struct Page<M: Machine, I: Invalidation<M>> {
    /// The page's PV entries. Protected by `pv_lock`.
    pv: M::Cell<PvHead<M>>,
    /// For whom delayed invalidation must wait. Written under `pv_lock`.
    pub(crate) invalidation: I::Page,
    /// Who keeps the page from being freed: mappings and holders. 0 for a frame that is
    /// free, a table or a chunk, so that nobody can hold one by mistake.
    references: M::AtomicU32,
    pv_lock: PvLock<M>,
    /// [`Page::DIRTY`], [`Page::REFERENCED`]. Written under `pv_lock`.
    flags: M::AtomicU8,
}

impl<M: Machine, I: Invalidation<M>> Page<M, I> {
    /// The page has been written since it was last taken for clean.
    pub const DIRTY: u8 = 1 << 0;
    /// The page has been used since it was last looked at.
    pub const REFERENCED: u8 = 1 << 1;

    pub(crate) fn new() -> Self {
        Page {
            pv: M::Cell::new(PvHead::EMPTY),
            invalidation: I::new_page(),
            references: M::AtomicU32::new(0),
            pv_lock: PvLock::<M>::new(),
            flags: M::AtomicU8::new(0),
        }
    }

    /// The page flags that an entry's accessed and dirty bits stand for.
    pub(crate) fn harvest(entry: u64) -> u8 {
        let dirty = if entry & pte::DIRTY != 0 {
            Self::DIRTY
        } else {
            0
        };
        let used = if entry & pte::ACCESSED != 0 {
            Self::REFERENCED
        } else {
            0
        };
        dirty | used
    }

    /// Locks the page's PV list.
    #[track_caller]
    pub(crate) fn lock_pv(&self) -> PvList<'_, M, I> {
        PvList {
            page: self,
            held: ManuallyDrop::new(self.pv_lock.lock()),
        }
    }

    /// Flags as they were a moment ago.
    pub fn flags(&self) -> u8 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Makes the descriptor that of a freshly allocated frame with one reference.
    pub(crate) fn begin(&self) {
        debug_assert_eq!(self.references.load(Ordering::Relaxed), 0);
        self.flags.store(0, Ordering::Relaxed);
        self.references.store(1, Ordering::Relaxed);
    }

    /// Adds a reference; the caller has one, or the PV lock with a mapping listed.
    pub(crate) fn retain(&self) {
        let old = self.references.fetch_add(1, Ordering::Relaxed);
        assert!(old < u32::MAX / 2, "page references overflow");
    }

    /// Adds a reference unless there is none any more.
    pub(crate) fn try_retain(&self) -> bool {
        let mut now = self.references.load(Ordering::Relaxed);
        while now != 0 {
            match self.references.compare_exchange_weak(
                now,
                now + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// Drops a reference; `true` if it was the last, and the frame is the caller's.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // AcqRel: who drops the last one sees all that the others did to the page.
        self.references.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// A page's PV list, locked.
pub(crate) struct PvList<'a, M: Machine, I: Invalidation<M>> {
    page: &'a Page<M, I>,
    held: ManuallyDrop<<PvLock<M> as RawLock<M>>::Held>,
}

impl<M: Machine, I: Invalidation<M>> PvList<'_, M, I> {
    fn head(&self) -> &PvHead<M> {
        // SAFETY: the PV lock is held.
        unsafe { &*self.page.pv.read() }
    }

    pub(crate) fn first(&self) -> Option<Pv<M>> {
        self.head().first()
    }

    /// `slot`'s mapping at `address`.
    pub(crate) fn find(&self, slot: *const Slot<M>, address: usize) -> Option<Pv<M>> {
        // SAFETY: the PV lock is held.
        unsafe { self.head().find(slot, address) }
    }

    /// # Safety
    /// `pv` is allocated and on no list.
    pub(crate) unsafe fn insert(&mut self, pv: Pv<M>) {
        // SAFETY: the PV lock is held; the rest is the caller's promise.
        unsafe { (*self.page.pv.write()).insert(pv) }
    }

    /// # Safety
    /// `pv` is on this list.
    pub(crate) unsafe fn remove(&mut self, pv: Pv<M>) {
        // SAFETY: the PV lock is held; the rest is the caller's promise.
        unsafe { (*self.page.pv.write()).remove(pv) }
    }

    /// Adds `flags` to the page's.
    pub(crate) fn set_flags(&mut self, flags: u8) {
        if flags != 0 {
            let now = self.page.flags.load(Ordering::Relaxed);
            self.page.flags.store(now | flags, Ordering::Relaxed);
        }
    }

    /// Takes the page's flags.
    pub(crate) fn take_flags(&mut self) -> u8 {
        let now = self.page.flags.load(Ordering::Relaxed);
        self.page.flags.store(0, Ordering::Relaxed);
        now
    }
}

impl<M: Machine, I: Invalidation<M>> Drop for PvList<'_, M, I> {
    fn drop(&mut self) {
        // SAFETY: `held` is from `lock_pv`, and taken once, here.
        unsafe { self.page.pv_lock.unlock(ManuallyDrop::take(&mut self.held)) }
    }
}

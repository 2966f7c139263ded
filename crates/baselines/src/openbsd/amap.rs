//! Amaps: the anonymous pages of a region, and their sharers (OpenBSD 7.0, sys/uvm/uvm_amap.c).
//!
//! An amap has a slot for each page of a region, with an *anon* or nothing. After a fork the
//! child's region refers to the parent's amap; the first write of either copies it, that is, its
//! slots: the anons themselves are shared, counted, until they are written.
//!
//! One lock must guard the anons that two amaps share. So a copy shares the lock of the amap it was
//! made from, and so do its own copies: one lock guards a whole family of processes, however many
//! there are.
//!
//! # Protocol
//! An amap's state and the counts of its anons are accessed under the family's lock. [`Amap::refs`]
//! is read without it: it is 1 only if the region that reads it has the only reference.

use super::SleepRw;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use machine::{Atomic, Machine, Ordering, SharedCell};
use sync::rwlock::RawRw;
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Mutex, Padded, lock_class};

lock_class!(
    /// The lock of an amap and of all its copies. A fault holds it from beginning to end.
    pub AmapLock = "amap", rank 16
);
lock_class!(
    pub AmapListLock = "amap list", rank 18
);

type Lock<M> = Watched<M, SleepRw<M>, AmapLock>;

/// The list of all amaps; here only their number.
pub struct AmapList<M: Machine>(Mutex<M, Watched<M, TestAndSet<M>, AmapListLock>, usize>);

impl<M: Machine> AmapList<M> {
    /// An empty list.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        AmapList(Mutex::new(0))
    }
}

/// A region's anonymous pages (see the module's head).
pub struct Amap<M: Machine> {
    /// The family's lock.
    lock: Arc<Padded<Lock<M>>>,
    /// Regions that refer to it, in whole or in part.
    refs: M::AtomicU32,
    slots: Box<[M::Cell<Slot<M>>]>,
    /// `am_ppref`: how many regions refer to each slot, once the regions differ.
    parts: M::Cell<Option<Box<[u32]>>>,
}

type Slot<M> = Option<Arc<Anon<M>>>;

/// An anonymous page, shared by the amaps that refer to it.
struct Anon<M: Machine> {
    refs: M::AtomicU32,
}

impl<M: Machine> Anon<M> {
    fn new() -> Arc<Self> {
        Arc::new(Anon {
            refs: M::AtomicU32::new(1),
        })
    }

    /// Changes the count under the family's lock, which orders it.
    fn count(&self, change: i32) {
        let refs = self.refs.load(Ordering::Relaxed);
        self.refs
            .store(refs.wrapping_add_signed(change), Ordering::Relaxed);
    }
}

/// An amap whose family is locked.
#[must_use = "the lock is released when this is dropped"]
pub struct Locked<'a, M: Machine>(&'a Amap<M>);

impl<M: Machine> Drop for Locked<'_, M> {
    fn drop(&mut self) {
        // SAFETY: this guard was made when the lock was acquired for writing.
        unsafe { self.0.lock.write_unlock() };
    }
}

impl<M: Machine> Amap<M> {
    /// An amap of `slots` empty slots, referred to by one region, with a family of its own.
    #[track_caller]
    pub(super) fn new(slots: usize, list: &AmapList<M>) -> Arc<Self> {
        let lock = Arc::new(Padded(Lock::<M>::new()));
        M::label_value(&*lock, "amap lock");
        *list.0.lock() += 1;
        let slots = (0..slots).map(|_| SharedCell::new(None)).collect();
        Self::with(lock, slots)
    }

    fn with(lock: Arc<Padded<Lock<M>>>, slots: Box<[M::Cell<Slot<M>>]>) -> Arc<Self> {
        Arc::new(Amap {
            lock,
            refs: M::AtomicU32::new(1),
            slots,
            parts: SharedCell::new(None),
        })
    }

    /// Returns true if only one region refers to it. Called for that region's space, whose map is
    /// locked.
    pub(super) fn is_only(&self) -> bool {
        self.refs.load(Ordering::Relaxed) == 1
    }

    /// Locks the family.
    #[track_caller]
    pub(super) fn lock(&self) -> Locked<'_, M> {
        self.lock.write();
        Locked(self)
    }
}

impl<M: Machine> Locked<'_, M> {
    /// Returns true if the slot has an anon.
    pub(super) fn has(&self, slot: usize) -> bool {
        // SAFETY: this guard holds the family's lock.
        unsafe { (*self.0.slots[slot].read()).is_some() }
    }

    /// Gives the slot a new anon, in place of its old one.
    pub(super) fn add(&self, slot: usize) {
        // SAFETY: this guard holds the family's lock.
        let place = unsafe { &mut *self.0.slots[slot].write() };
        if let Some(old) = place.replace(Anon::new()) {
            old.count(-1);
        }
    }

    /// Counts another region that refers to `slots`.
    pub(super) fn refer(&self, slots: &Range<usize>) {
        self.count(1);
        self.count_parts(slots, 1);
    }

    /// Records that a region has been split into two that refer to a part each.
    pub(super) fn split(&self) {
        let refs = self.0.refs.load(Ordering::Relaxed);
        // SAFETY: this guard holds the family's lock.
        let parts = unsafe { &mut *self.0.parts.write() };
        parts.get_or_insert_with(|| self.0.slots.iter().map(|_| refs).collect());
        self.count(1);
    }

    /// Drops the reference of a region to `slots`. The last one frees all anons.
    #[track_caller]
    pub(super) fn leave(self, slots: &Range<usize>, list: &AmapList<M>) {
        if self.0.is_only() {
            self.count(-1);
            self.wipe(0..self.0.slots.len());
            *list.0.lock() -= 1;
        } else {
            self.count(-1);
            self.count_parts(slots, -1);
        }
    }

    /// Makes an amap of its own for a region that referred to `slots`; `None` if no other region
    /// refers to this one any more.
    #[track_caller]
    pub(super) fn copy(self, slots: &Range<usize>, list: &AmapList<M>) -> Option<Arc<Amap<M>>> {
        if self.0.is_only() {
            return None;
        }
        let copies: Vec<Slot<M>> = slots.clone().map(|slot| self.share(slot)).collect();
        self.count(-1);
        self.count_parts(slots, -1);
        if copies.iter().all(Option::is_none) {
            // The copy shares no anon, so it is in no family.
            drop(self);
            return Some(Amap::new(copies.len(), list));
        }
        let lock = self.0.lock.clone();
        drop(self);
        *list.0.lock() += 1;
        let slots = copies.into_iter().map(SharedCell::new).collect();
        Some(Amap::with(lock, slots))
    }

    /// The slot's anon, counted once more.
    fn share(&self, slot: usize) -> Slot<M> {
        // SAFETY: this guard holds the family's lock.
        let anon = unsafe { (*self.0.slots[slot].read()).clone() };
        if let Some(anon) = &anon {
            anon.count(1);
        }
        anon
    }

    fn count(&self, change: i32) {
        let refs = self.0.refs.load(Ordering::Relaxed);
        let refs = refs.wrapping_add_signed(change);
        self.0.refs.store(refs, Ordering::Relaxed);
    }

    /// If regions refer to parts, changes the counts of `slots` and removes the anons of slots to
    /// which no region refers any more.
    fn count_parts(&self, slots: &Range<usize>, change: i32) {
        // SAFETY: this guard holds the family's lock.
        let Some(parts) = (unsafe { &mut *self.0.parts.write() }) else {
            return;
        };
        for slot in slots.clone() {
            parts[slot] = parts[slot].saturating_add_signed(change);
            if parts[slot] == 0 {
                self.wipe(slot..slot + 1);
            }
        }
    }

    /// Removes the anons of `slots`.
    fn wipe(&self, slots: Range<usize>) {
        for slot in slots {
            // SAFETY: this guard holds the family's lock.
            if let Some(anon) = unsafe { (*self.0.slots[slot].write()).take() } {
                anon.count(-1);
            }
        }
    }
}

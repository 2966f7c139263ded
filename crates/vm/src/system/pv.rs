//! Which lock protects a page's PV list, and where PV entries are kept.

use super::{Extent, Part};
use crate::error::Error;
use crate::lock::PvLock;
use crate::pv::Pv;
use machine::{Asid, Frame, Machine, Memory};
use sync::RawLock;

/// The choice of the lock that protects a page's PV list: its own, or one that it shares with other
/// pages.
///
/// It is silent ([`Part::is_silent`]) if a list that no other task can know of is not locked.
///
/// # Safety
/// No two [`PvLocking::Held`] of one frame exist at a time; locking synchronizes with the unlock
/// before it.
pub unsafe trait PvLocking<M: Machine>: Part<M> {
    /// A list, locked until this is dropped.
    type Held<'a>;

    /// Returns true if all 512 pages of an aligned block, and perhaps others, have one lock; never
    /// changes. If not, `own` is the page's lock, so that the VM may lock several together.
    fn is_per_block(&self) -> bool;

    /// Returns true if two frames have the same lock. Asked only if [`PvLocking::is_per_block`].
    fn is_same(&self, one: Frame, other: Frame) -> bool;

    /// Locks the list of the page in `frame`; `own` is the byte that each page has for it.
    fn lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> Self::Held<'a>;

    /// Locks the list of the page in `frame`, if that needs no waiting.
    fn try_lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> Option<Self::Held<'a>>;

    /// Returns true if the list of the page in `frame` was locked a moment ago: for assertions.
    fn is_locked(&self, frame: Frame, own: &PvLock<M>) -> bool;
}

/// The default: a byte in each page (case study 002).
#[derive(Debug)]
pub struct PvBytes;

/// A page's byte, locked.
pub struct PvByteHeld<'a, M: Machine> {
    lock: &'a PvLock<M>,
    held: Option<<PvLock<M> as RawLock<M>>::Held>,
}

impl<M: Machine> Part<M> for PvBytes {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(PvBytes)
    }

    #[inline]
    fn is_silent(&self) -> bool {
        true
    }
}

// SAFETY: a lock for each frame.
unsafe impl<M: Machine> PvLocking<M> for PvBytes {
    type Held<'a> = PvByteHeld<'a, M>;

    #[inline]
    fn is_per_block(&self) -> bool {
        false
    }

    #[inline]
    fn is_same(&self, one: Frame, other: Frame) -> bool {
        one == other
    }

    #[inline]
    #[track_caller]
    fn lock<'a>(&'a self, _frame: Frame, own: &'a PvLock<M>) -> PvByteHeld<'a, M> {
        PvByteHeld {
            lock: own,
            held: Some(own.lock()),
        }
    }

    #[inline]
    #[track_caller]
    fn try_lock<'a>(&'a self, _frame: Frame, own: &'a PvLock<M>) -> Option<PvByteHeld<'a, M>> {
        let held = Some(own.try_lock()?);
        Some(PvByteHeld { lock: own, held })
    }

    #[inline]
    fn is_locked(&self, _frame: Frame, own: &PvLock<M>) -> bool {
        own.is_locked()
    }
}

impl<M: Machine> Drop for PvByteHeld<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: from the acquisition when this was made, and given back once.
            unsafe { self.lock.unlock(held) };
        }
    }
}

/// Chunks of PV entries, from which a mapping at any address takes one (FreeBSD's way), in place
/// of the tables in which an entry's place follows from its address.
///
/// A chunk is a frame that belongs to one pmap. A pmap's record of its chunks is changed under the
/// pmap's lock ([`Gate::lock_pmap`](super::Gate::lock_pmap)), or by a task that has the pmap to
/// itself. With chunks, forks copy tables whatever the options say: a shared table needs PV entries
/// in tables. A task may lock chunks in a block of the delayed invalidation, so it must be allowed
/// to sleep there ([`Invalidation::may_sleep`](super::Invalidation::may_sleep)).
///
/// # Safety
/// An entry that was taken is not handed out again until it is given back; it stays where it is,
/// unchanged.
pub unsafe trait PvChunks<M: Machine>: Part<M> {
    /// A pmap's record of its chunks.
    type Pmap: Send + Sync;

    /// The record of the new pmap with this tag, which has no chunks.
    fn new_pmap(&self, tag: Asid) -> Self::Pmap;

    /// Returns true if an entry can be taken without a new chunk.
    fn has_room(&self, machine: &M, pmap: &Self::Pmap) -> bool
    where
        M: Memory;

    /// Makes `frame` a chunk of the pmap at `owner` with this tag.
    fn add(&self, machine: &M, pmap: &Self::Pmap, frame: Frame, owner: *const (), tag: Asid)
    where
        M: Memory;

    /// Takes an entry for a mapping at `address`. There is room.
    fn take(&self, machine: &M, pmap: &Self::Pmap, address: usize) -> Pv
    where
        M: Memory;

    /// Gives an entry back, which is on no list.
    ///
    /// # Safety
    /// It was taken from this pmap's chunks.
    unsafe fn give(&self, machine: &M, pmap: &Self::Pmap, pv: Pv)
    where
        M: Memory;

    /// Calls `free` with the chunks in which no entry is taken; they are then the caller's.
    fn trim(&self, machine: &M, pmap: &Self::Pmap, free: impl FnMut(Frame))
    where
        M: Memory;

    /// The address that the mapping of a taken entry maps.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    unsafe fn address(&self, machine: &M, pv: Pv) -> usize
    where
        M: Memory;

    /// Records that the mapping of a taken entry is now at `address`.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    unsafe fn set_address(&self, machine: &M, pv: Pv, address: usize)
    where
        M: Memory;

    /// The owner of a taken entry, as given to [`PvChunks::add`].
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    unsafe fn owner(&self, machine: &M, pv: Pv) -> *const ()
    where
        M: Memory;

    /// The next pmap to lose mappings when there is no frame for a chunk. Pmaps take turns: the
    /// next call returns another one, as long as there are others. No lock is held.
    fn next_victim(&self, machine: &M) -> Option<Victim>
    where
        M: Memory;

    /// Calls `see` with the addresses of the mappings whose entries are in the victim's chunk, if
    /// that is still this pmap's.
    fn mappings_of(&self, machine: &M, pmap: &Self::Pmap, victim: Victim, see: impl FnMut(usize))
    where
        M: Memory;
}

/// A chunk that is to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The tag of its pmap.
    pub tag: Asid,
    /// The chunk; if none, any of the pmap's.
    pub chunk: Option<Frame>,
}

/// The default: no chunks; entries are in tables ([`crate::pv`]).
#[derive(Debug)]
pub enum NoChunks {}

impl<M: Machine> Part<M> for NoChunks {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        let reason = "PV entries are in tables";
        Err(Error::Invalid { reason })
    }
}

// SAFETY: there are no entries.
unsafe impl<M: Machine> PvChunks<M> for NoChunks {
    type Pmap = ();

    fn new_pmap(&self, _: Asid) {}

    fn has_room(&self, _: &M, _: &()) -> bool {
        match *self {}
    }

    fn add(&self, _: &M, _: &(), _: Frame, _: *const (), _: Asid) {}

    fn take(&self, _: &M, _: &(), _: usize) -> Pv {
        match *self {}
    }

    unsafe fn give(&self, _: &M, _: &(), _: Pv) {}

    fn trim(&self, _: &M, _: &(), _: impl FnMut(Frame)) {}

    unsafe fn address(&self, _: &M, _: Pv) -> usize {
        match *self {}
    }

    unsafe fn set_address(&self, _: &M, _: Pv, _: usize) {}

    unsafe fn owner(&self, _: &M, _: Pv) -> *const () {
        match *self {}
    }

    fn next_victim(&self, _: &M) -> Option<Victim> {
        match *self {}
    }

    fn mappings_of(&self, _: &M, _: &(), _: Victim, _: impl FnMut(usize)) {}
}

//! One lock for what is mapped, one for the page tables: an address space as the systems
//! of the seeds lock it.
//!
//! FreeBSD's `vm_map` has an `sx` lock, which a fault takes for reading and `mmap`,
//! `munmap`, `mprotect` and `brk` for writing; its `pmap` has a mutex. Both are here in
//! front of `vm`'s tree, whose own locks are then never waited for. What differs: a fault
//! keeps the map's lock until the page is there, and a mapping that is found by an
//! address hint costs no search of the map.

use machine::Machine;
use sync::adaptive::Adaptive;
use sync::rwlock::{RawRw, SpinParkRw};
use sync::watch::Watched;
use sync::{Padded, RawLock, lock_class};
use vm::policy::MapLocking;

lock_class!(
    /// A space's map. Readers fault, writers change what is mapped.
    pub SpaceMap = "space map", rank 10
);
lock_class!(
    /// A pmap. Sleeps when its holder does.
    pub PmapTables = "pmap", rank 29
);

type MapLock<M> = Watched<M, SpinParkRw<M>, SpaceMap>;
type PmapLock<M> = Watched<M, Adaptive<M>, PmapTables>;

/// The locks of a space: 256 bytes.
pub struct OneLock<M: Machine> {
    map: Padded<MapLock<M>>,
    pmap: Padded<PmapLock<M>>,
}

/// The map, locked for reading.
#[must_use = "the lock is released when this is dropped"]
pub struct MapRead<'a, M: Machine>(&'a MapLock<M>);

/// The map, locked for writing.
#[must_use = "the lock is released when this is dropped"]
pub struct MapWrite<'a, M: Machine>(&'a MapLock<M>);

/// The pmap, locked.
#[must_use = "the lock is released when this is dropped"]
pub struct PmapHeld<'a, M: Machine> {
    lock: &'a PmapLock<M>,
    held: Option<<PmapLock<M> as RawLock<M>>::Held>,
}

impl<M: Machine> MapLocking<M> for OneLock<M> {
    type Read<'a> = MapRead<'a, M>;
    type Write<'a> = MapWrite<'a, M>;
    type Pmap<'a> = PmapHeld<'a, M>;
    type Config = ();

    fn new(_: &()) -> Self {
        OneLock {
            map: Padded(RawRw::new()),
            pmap: Padded(RawLock::new()),
        }
    }

    fn label(&self) {
        M::label_value(&self.map, "OneLock.map");
        M::label_value(&self.pmap, "OneLock.pmap");
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> MapRead<'_, M> {
        self.map.read();
        MapRead(&self.map)
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> MapWrite<'_, M> {
        self.map.write();
        MapWrite(&self.map)
    }

    #[inline]
    #[track_caller]
    fn pmap(&self) -> PmapHeld<'_, M> {
        PmapHeld {
            lock: &self.pmap,
            held: Some(self.pmap.lock()),
        }
    }

    #[inline]
    #[track_caller]
    fn try_pmap(&self) -> Option<PmapHeld<'_, M>> {
        let held = Some(self.pmap.try_lock()?);
        Some(PmapHeld {
            lock: &self.pmap,
            held,
        })
    }
}

impl<M: Machine> Drop for MapRead<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: read-locked when this was made.
        unsafe { self.0.read_unlock() };
    }
}

impl<M: Machine> Drop for MapWrite<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: write-locked when this was made.
        unsafe { self.0.write_unlock() };
    }
}

impl<M: Machine> Drop for PmapHeld<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: from the lock's acquisition when this was made, and given back once.
            unsafe { self.lock.unlock(held) };
        }
    }
}

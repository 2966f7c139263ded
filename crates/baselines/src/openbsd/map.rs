//! What an OpenBSD space locks beside its amaps: `vm_map`'s rwlock, and the pmap's mutex.

use super::SleepRw;
use machine::Machine;
use sync::rwlock::RawRw;
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Padded, RawLock, lock_class};
use vm::policy::MapLocking;

lock_class!(
    /// A space's `vm_map`. Readers fault, writers change what is mapped.
    pub VmMapLock = "vm_map", rank 10
);
lock_class!(
    /// `pm_mtx` of a pmap. A spin lock.
    pub PmapMutex = "pm_mtx", rank 29
);

type Map<M> = Watched<M, SleepRw<M>, VmMapLock>;
type Pmap<M> = Watched<M, TestAndSet<M>, PmapMutex>;

/// The locks of a space: 256 bytes.
pub struct VmMap<M: Machine> {
    map: Padded<Map<M>>,
    pmap: Padded<Pmap<M>>,
}

/// The map, locked for reading.
#[must_use = "the lock is released when this is dropped"]
pub struct VmMapRead<'a, M: Machine>(&'a Map<M>);

/// The map, locked for writing.
#[must_use = "the lock is released when this is dropped"]
pub struct VmMapWrite<'a, M: Machine>(&'a Map<M>);

/// The pmap, locked.
#[must_use = "the lock is released when this is dropped"]
pub struct PmapEntered<'a, M: Machine> {
    lock: &'a Pmap<M>,
    held: Option<<Pmap<M> as RawLock<M>>::Held>,
}

impl<M: Machine> MapLocking<M> for VmMap<M> {
    type Read<'a> = VmMapRead<'a, M>;
    type Write<'a> = VmMapWrite<'a, M>;
    type Pmap<'a> = PmapEntered<'a, M>;
    type Config = ();

    fn new(_: &()) -> Self {
        VmMap {
            map: Padded(RawRw::new()),
            pmap: Padded(RawLock::new()),
        }
    }

    fn label(&self) {
        M::label_value(&self.map, "vm_map");
        M::label_value(&self.pmap, "pm_mtx");
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> VmMapRead<'_, M> {
        self.map.read();
        VmMapRead(&self.map)
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> VmMapWrite<'_, M> {
        self.map.write();
        VmMapWrite(&self.map)
    }

    #[inline]
    #[track_caller]
    fn pmap(&self) -> PmapEntered<'_, M> {
        PmapEntered {
            lock: &self.pmap,
            held: Some(self.pmap.lock()),
        }
    }

    #[inline]
    #[track_caller]
    fn try_pmap(&self) -> Option<PmapEntered<'_, M>> {
        let held = Some(self.pmap.try_lock()?);
        Some(PmapEntered {
            lock: &self.pmap,
            held,
        })
    }
}

impl<M: Machine> Drop for VmMapRead<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: read-locked when this was made.
        unsafe { self.0.read_unlock() };
    }
}

impl<M: Machine> Drop for VmMapWrite<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: write-locked when this was made.
        unsafe { self.0.write_unlock() };
    }
}

impl<M: Machine> Drop for PmapEntered<'_, M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // SAFETY: from the lock's acquisition when this was made, and given back once.
            unsafe { self.lock.unlock(held) };
        }
    }
}

//! The locks of a space in the systems of the case studies: one for the map, one for the page
//! tables.
//!
//! FreeBSD's `vm_map` has an `sx` lock, which a fault takes for reading and `mmap`, `munmap`,
//! `mprotect` and `brk` for writing; its `pmap` has a mutex. OpenBSD's `vm_map` has a rwlock that
//! sleeps, its pmap a spin mutex. [`OneLock`]'s locks are `sync`'s own, [`SxMap`]'s FreeBSD's. Here
//! both stand in front of `vm`'s tree, whose own locks are then never contended. The differences: a
//! fault keeps the map's lock until the page is there, and a mapping found by an address hint costs
//! no search of the map.

use crate::openbsd::SleepRw;
use machine::Machine;
use sync::adaptive::{Adaptive, FreebsdMutex};
use sync::rwlock::{FreebsdRw, RawReadGuard, RawRw, RawWriteGuard, SpinParkRw};
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Padded, RawGuard, RawLock, lock_class};
use vm::policy::MapLocking;

lock_class!(
    /// A space's map. Readers fault, writers change the mappings.
    pub SpaceMap = "space map", rank 10
);
lock_class!(
    /// A pmap. It sleeps when its holder does.
    pub PmapTables = "pmap", rank 29
);
lock_class!(
    /// A space's `vm_map`. Readers fault, writers change the mappings.
    pub VmMapLock = "vm_map", rank 10
);
lock_class!(
    /// `pm_mtx` of a pmap. A spin lock.
    pub PmapMutex = "pm_mtx", rank 29
);

/// A system's choice of the two locks.
pub trait Kinds<M: Machine>: Send + Sync + 'static {
    /// The map's.
    type Map: RawRw<M>;
    /// The pmap's.
    type Pmap: RawLock<M>;
    /// The names of both, for machines that attribute cache lines to names.
    const LABELS: [&'static str; 2];
}

/// FreeBSD's choice.
pub enum FreebsdKinds {}

impl<M: Machine> Kinds<M> for FreebsdKinds {
    type Map = Watched<M, SpinParkRw<M>, SpaceMap>;
    type Pmap = Watched<M, Adaptive<M>, PmapTables>;
    const LABELS: [&'static str; 2] = ["OneLock.map", "OneLock.pmap"];
}

/// FreeBSD's choice, with locks that spin and sleep as its own of today.
pub enum SxKinds {}

impl<M: Machine> Kinds<M> for SxKinds {
    type Map = Watched<M, FreebsdRw<M>, SpaceMap>;
    type Pmap = Watched<M, FreebsdMutex<M>, PmapTables>;
    const LABELS: [&'static str; 2] = ["vm_map.lock", "pm_mtx"];
}

/// OpenBSD's choice.
pub enum OpenbsdKinds {}

impl<M: Machine> Kinds<M> for OpenbsdKinds {
    type Map = Watched<M, SleepRw<M>, VmMapLock>;
    /// In OpenBSD a holder never sleeps; here it may, for the lock of a page's PV list.
    type Pmap = Watched<M, TestAndSet<M, true>, PmapMutex>;
    const LABELS: [&'static str; 2] = ["vm_map", "pm_mtx"];
}

/// The locks of a FreeBSD space.
pub type OneLock<M> = MapLocks<M, FreebsdKinds>;
/// The locks of a FreeBSD 14 space besides its objects'.
pub type SxMap<M> = MapLocks<M, SxKinds>;
/// The locks of an OpenBSD space besides its amaps'.
pub type VmMap<M> = MapLocks<M, OpenbsdKinds>;

/// The locks of a space: 256 bytes.
pub struct MapLocks<M: Machine, K: Kinds<M>> {
    map: Padded<K::Map>,
    pmap: Padded<K::Pmap>,
}

impl<M: Machine, K: Kinds<M>> MapLocking<M> for MapLocks<M, K> {
    type Read<'a> = RawReadGuard<'a, M, K::Map>;
    type Write<'a> = RawWriteGuard<'a, M, K::Map>;
    type Pmap<'a> = RawGuard<'a, M, K::Pmap>;
    type Config = ();

    fn new(_: &()) -> Self {
        MapLocks {
            map: Padded(RawRw::new()),
            pmap: Padded(RawLock::new()),
        }
    }

    fn label(&self) {
        M::label_value(&self.map, K::LABELS[0]);
        M::label_value(&self.pmap, K::LABELS[1]);
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> Self::Read<'_> {
        RawReadGuard::new(&self.map)
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> Self::Write<'_> {
        RawWriteGuard::new(&self.map)
    }

    #[inline]
    #[track_caller]
    fn pmap(&self) -> Self::Pmap<'_> {
        RawGuard::new(&self.pmap)
    }

    #[inline]
    #[track_caller]
    fn try_pmap(&self) -> Option<Self::Pmap<'_>> {
        RawGuard::try_new(&self.pmap)
    }
}

//! The locks of a space in the systems of the case studies: one for the map, one for the page
//! tables.
//!
//! FreeBSD's `vm_map` has an `sx` lock, which a fault takes for reading and `mmap`, `munmap`,
//! `mprotect` and `brk` for writing; its `pmap` has a mutex. OpenBSD's `vm_map` has a rwlock that
//! sleeps, its pmap a spin mutex. [`OneLock`] has `sync`'s own locks, [`SxMap`] FreeBSD's. Here
//! both are acquired before `vm`'s tree, whose own locks are then never contended. The differences:
//! a fault keeps the map's lock until the page is there, and a mapping found by an address hint
//! costs no search of the map.

use crate::openbsd::SleepRw;
use alloc::boxed::Box;
use core::marker::PhantomData;
use machine::{Access, Machine};
use sync::adaptive::{Adaptive, FreebsdMutex};
use sync::rwlock::{FreebsdRw, RawReadGuard, RawRw, RawWriteGuard, SpinParkRw};
use sync::spin::TestAndSet;
use sync::watch::Watched;
use sync::{Padded, RawGuard, RawLock, lock_class};
use vm::Error;
use vm::system::{Extent, Gate, Op, Part};

lock_class!(
    /// The lock of a space's map. Readers fault, writers change the mappings.
    pub SpaceMap = "space map", rank 10
);
lock_class!(
    /// The lock of a pmap. It sleeps when its holder does.
    pub PmapTables = "pmap", rank 29
);
lock_class!(
    /// The lock of a space's `vm_map`. Readers fault, writers change the mappings.
    pub VmMapLock = "vm_map", rank 10
);
lock_class!(
    /// `pm_mtx` of a pmap. A spin lock.
    pub PmapMutex = "pm_mtx", rank 29
);

/// A system's choice of the two locks.
pub trait Kinds<M: Machine>: Send + Sync + 'static {
    /// The lock of the map.
    type Map: RawRw<M>;
    type Pmap: RawLock<M>;
    /// The names of both, for machines that attribute cache lines to names.
    const LABELS: [&'static str; 2];
}

/// FreeBSD's choice, with `sync`'s own locks.
pub enum FreebsdKinds {}

impl<M: Machine> Kinds<M> for FreebsdKinds {
    type Map = Watched<M, SpinParkRw<M>, SpaceMap>;
    type Pmap = Watched<M, Adaptive<M>, PmapTables>;
    const LABELS: [&'static str; 2] = ["OneLock.map", "OneLock.pmap"];
}

/// FreeBSD's choice, with locks that spin and sleep as FreeBSD's present ones do.
pub enum SxKinds {}

impl<M: Machine> Kinds<M> for SxKinds {
    type Map = Watched<M, FreebsdRw<M>, SpaceMap>;
    type Pmap = Watched<M, FreebsdMutex<M>, PmapTables>;
    const LABELS: [&'static str; 2] = ["vm_map.lock", "pm_mtx"];
}

/// OpenBSD's choice of the two locks.
pub enum OpenbsdKinds {}

impl<M: Machine> Kinds<M> for OpenbsdKinds {
    type Map = Watched<M, SleepRw<M>, VmMapLock>;
    /// In OpenBSD a holder never sleeps; here it may, for the lock of a page's PV list.
    type Pmap = Watched<M, TestAndSet<M, true>, PmapMutex>;
    const LABELS: [&'static str; 2] = ["vm_map", "pm_mtx"];
}

/// The gate of a FreeBSD space.
pub type OneLock<M> = LocksOnly<M, FreebsdKinds>;
/// The gate of a FreeBSD space with locks like FreeBSD's present ones.
pub type SxMap<M> = LocksOnly<M, SxKinds>;

/// The locks of a space: 256 bytes.
pub struct MapLocks<M: Machine, K: Kinds<M>> {
    map: Padded<K::Map>,
    pmap: Padded<K::Pmap>,
}

/// An operation's hold on the map's lock.
#[derive(Default)]
#[must_use = "the lock is released when this is dropped"]
pub enum MapHeld<'a, M: Machine, K: Kinds<M>> {
    /// The lock is not held.
    #[default]
    Nothing,
    /// Locked for reading.
    Read(RawReadGuard<'a, M, K::Map>),
    /// Locked for writing.
    Write(RawWriteGuard<'a, M, K::Map>),
}

/// The pmap's lock, if the gate has one.
#[must_use = "the lock is released when this is dropped"]
pub struct PmapHeld<'a, M: Machine, K: Kinds<M>>(Option<RawGuard<'a, M, K::Pmap>>);

impl<M: Machine, K: Kinds<M>> Default for PmapHeld<'_, M, K> {
    fn default() -> Self {
        PmapHeld(None)
    }
}

impl<M: Machine, K: Kinds<M>> MapLocks<M, K> {
    pub(crate) fn new() -> Self {
        MapLocks {
            map: Padded(RawRw::new()),
            pmap: Padded(RawLock::new()),
        }
    }

    pub(crate) fn label(&self) {
        M::label_value(&self.map, K::LABELS[0]);
        M::label_value(&self.pmap, K::LABELS[1]);
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> MapHeld<'_, M, K> {
        MapHeld::Read(RawReadGuard::new(&*self.map))
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> MapHeld<'_, M, K> {
        MapHeld::Write(RawWriteGuard::new(&*self.map))
    }

    /// Locks the map for reading, after calls of `copy` under the lock for writing have left
    /// nothing to do.
    #[inline]
    #[track_caller]
    fn read_when(&self, wants_copy: impl Fn() -> bool, copy: impl Fn()) -> MapHeld<'_, M, K> {
        loop {
            let read = self.read();
            if !wants_copy() {
                return read;
            }
            drop(read);
            let _write = self.write();
            copy();
        }
    }

    /// Locks the map as the operation needs it.
    #[inline]
    #[track_caller]
    pub(crate) fn begin(&self, op: Op) -> MapHeld<'_, M, K> {
        match op {
            Op::Look | Op::Fault { .. } => self.read(),
            Op::Change => self.write(),
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn lock_pmap(&self) -> PmapHeld<'_, M, K> {
        PmapHeld(Some(RawGuard::new(&*self.pmap)))
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_lock_pmap(&self) -> Option<PmapHeld<'_, M, K>> {
        Some(PmapHeld(Some(RawGuard::try_new(&*self.pmap)?)))
    }
}

/// The locks of a space, and its map entries: a `vm_map`.
pub struct VmMap<M: Machine, K: Kinds<M>, E> {
    pub(crate) locks: MapLocks<M, K>,
    pub(crate) entries: Box<E>,
}

/// Held by an operation on a [`VmMap`]: what a fault holds of the entries, and the map's lock.
#[must_use = "the locks are released when this is dropped"]
pub struct VmMapHeld<'a, M: Machine, K: Kinds<M>, F> {
    pub(crate) fault: F,
    pub(crate) _map: MapHeld<'a, M, K>,
}

impl<M: Machine, K: Kinds<M>, F: Default> Default for VmMapHeld<'_, M, K, F> {
    fn default() -> Self {
        VmMapHeld {
            fault: F::default(),
            _map: MapHeld::Nothing,
        }
    }
}

impl<M: Machine, K: Kinds<M>, E> VmMap<M, K, E> {
    pub(crate) fn new(entries: E) -> Self {
        VmMap {
            locks: MapLocks::new(),
            entries: Box::new(entries),
        }
    }

    /// Locks the map as the operation needs it. A fault calls `copy` first, as long as it
    /// `wants_copy`.
    #[track_caller]
    pub(crate) fn lock_map(
        &self,
        op: Op,
        wants_copy: impl Fn(&E, usize, Access) -> bool,
        copy: impl Fn(&E, usize),
    ) -> MapHeld<'_, M, K> {
        let Op::Fault { address, access } = op else {
            return self.locks.begin(op);
        };
        let entries = &*self.entries;
        self.locks.read_when(
            || wants_copy(entries, address, access),
            || copy(entries, address),
        )
    }
}

/// A gate of a map's lock and a pmap's, without records.
pub struct LocksOnly<M, K>(PhantomData<fn() -> (M, K)>);

impl<M: Machine, K: Kinds<M>> Part<M> for LocksOnly<M, K> {
    type Config = ();

    fn new(_: &(), _: Extent) -> Result<Self, Error> {
        Ok(LocksOnly(PhantomData))
    }
}

impl<M: Machine, K: Kinds<M>> Gate<M> for LocksOnly<M, K> {
    type Space = MapLocks<M, K>;
    type Page = ();
    type Object = ();
    type Guard<'a> = MapHeld<'a, M, K>;
    type Pmap<'a> = PmapHeld<'a, M, K>;

    fn new_space(&self) -> MapLocks<M, K> {
        MapLocks::new()
    }

    fn new_object(&self) {}

    fn label_space(space: &MapLocks<M, K>) {
        space.label();
    }

    #[inline]
    #[track_caller]
    fn begin<'a>(&'a self, space: &'a MapLocks<M, K>, op: Op) -> MapHeld<'a, M, K> {
        space.begin(op)
    }

    #[inline]
    #[track_caller]
    fn lock_pmap<'a>(&self, space: &'a MapLocks<M, K>) -> PmapHeld<'a, M, K> {
        space.lock_pmap()
    }

    #[inline]
    #[track_caller]
    fn try_lock_pmap<'a>(&self, space: &'a MapLocks<M, K>) -> Option<PmapHeld<'a, M, K>> {
        space.try_lock_pmap()
    }
}

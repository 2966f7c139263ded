//! Any locks of a space.

use crate::freebsd::{MapRead, MapWrite, OneLock, PmapHeld};
use crate::openbsd::{PmapEntered, VmMap, VmMapRead, VmMapWrite};
use machine::Machine;
use vm::policy::MapLocking;

/// Which locks [`AnyLocking`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locks {
    /// [`OneLock`].
    #[default]
    OneLock,
    /// [`VmMap`].
    VmMap,
}

/// The locks of a space, chosen when the VM is made.
pub enum AnyLocking<M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(OneLock<M>),
    /// See [`Locks::VmMap`].
    VmMap(VmMap<M>),
}

/// The map, locked for reading.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyMapRead<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(MapRead<'a, M>),
    /// See [`Locks::VmMap`].
    VmMap(VmMapRead<'a, M>),
}

/// The map, locked for writing.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyMapWrite<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(MapWrite<'a, M>),
    /// See [`Locks::VmMap`].
    VmMap(VmMapWrite<'a, M>),
}

/// The pmap, locked.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyPmap<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(PmapHeld<'a, M>),
    /// See [`Locks::VmMap`].
    VmMap(PmapEntered<'a, M>),
}

impl<M: Machine> MapLocking<M> for AnyLocking<M> {
    type Read<'a> = AnyMapRead<'a, M>;
    type Write<'a> = AnyMapWrite<'a, M>;
    type Pmap<'a> = AnyPmap<'a, M>;
    type Config = Locks;

    fn new(locks: &Locks) -> Self {
        match locks {
            Locks::OneLock => AnyLocking::OneLock(OneLock::new(&())),
            Locks::VmMap => AnyLocking::VmMap(VmMap::new(&())),
        }
    }

    fn label(&self) {
        match self {
            AnyLocking::OneLock(locks) => locks.label(),
            AnyLocking::VmMap(locks) => locks.label(),
        }
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> AnyMapRead<'_, M> {
        match self {
            AnyLocking::OneLock(locks) => AnyMapRead::OneLock(locks.read()),
            AnyLocking::VmMap(locks) => AnyMapRead::VmMap(locks.read()),
        }
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> AnyMapWrite<'_, M> {
        match self {
            AnyLocking::OneLock(locks) => AnyMapWrite::OneLock(locks.write()),
            AnyLocking::VmMap(locks) => AnyMapWrite::VmMap(locks.write()),
        }
    }

    #[inline]
    #[track_caller]
    fn pmap(&self) -> AnyPmap<'_, M> {
        match self {
            AnyLocking::OneLock(locks) => AnyPmap::OneLock(locks.pmap()),
            AnyLocking::VmMap(locks) => AnyPmap::VmMap(locks.pmap()),
        }
    }

    #[inline]
    #[track_caller]
    fn try_pmap(&self) -> Option<AnyPmap<'_, M>> {
        Some(match self {
            AnyLocking::OneLock(locks) => AnyPmap::OneLock(locks.try_pmap()?),
            AnyLocking::VmMap(locks) => AnyPmap::VmMap(locks.try_pmap()?),
        })
    }
}

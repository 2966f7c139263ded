//! Any locks of a space.

use crate::freebsd::{OneLock, SxMap};
use crate::linux::MmapLock;
use crate::openbsd::VmMap;
use machine::Machine;
#[cfg(doc)]
use vm::policy::PerSlot;
use vm::policy::{MapLocking, Seldom};

/// The locks of an [`AnyLocking`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locks {
    /// [`OneLock`].
    #[default]
    OneLock,
    /// [`SxMap`].
    SxMap,
    /// [`VmMap`].
    VmMap,
    /// [`MmapLock`].
    MmapLock {
        /// Its option.
        downgrades: bool,
    },
    /// [`PerSlot`]: none.
    PerSlot,
}

/// The locks of a space, chosen when the VM is made.
pub enum AnyLocking<M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(OneLock<M>),
    /// See [`Locks::SxMap`].
    SxMap(SxMap<M>),
    /// See [`Locks::VmMap`].
    VmMap(VmMap<M>),
    /// See [`Locks::MmapLock`].
    MmapLock(MmapLock<M>),
    /// See [`Locks::PerSlot`].
    PerSlot,
}

/// The map, locked for reading.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyMapRead<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(<OneLock<M> as MapLocking<M>>::Read<'a>),
    /// See [`Locks::SxMap`].
    SxMap(<SxMap<M> as MapLocking<M>>::Read<'a>),
    /// See [`Locks::VmMap`].
    VmMap(<VmMap<M> as MapLocking<M>>::Read<'a>),
    /// See [`Locks::MmapLock`].
    MmapLock(<MmapLock<M> as MapLocking<M>>::Read<'a>),
}

/// The map, locked for writing.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyMapWrite<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(<OneLock<M> as MapLocking<M>>::Write<'a>),
    /// See [`Locks::SxMap`].
    SxMap(<SxMap<M> as MapLocking<M>>::Write<'a>),
    /// See [`Locks::VmMap`].
    VmMap(<VmMap<M> as MapLocking<M>>::Write<'a>),
    /// See [`Locks::MmapLock`].
    MmapLock(<MmapLock<M> as MapLocking<M>>::Write<'a>),
}

/// The pmap, locked.
#[must_use = "the lock is released when this is dropped"]
pub enum AnyPmap<'a, M: Machine> {
    /// See [`Locks::OneLock`].
    OneLock(<OneLock<M> as MapLocking<M>>::Pmap<'a>),
    /// See [`Locks::SxMap`].
    SxMap(<SxMap<M> as MapLocking<M>>::Pmap<'a>),
    /// See [`Locks::VmMap`].
    VmMap(<VmMap<M> as MapLocking<M>>::Pmap<'a>),
}

impl<M: Machine> MapLocking<M> for AnyLocking<M> {
    type Read<'a> = Seldom<AnyMapRead<'a, M>>;
    type Write<'a> = Seldom<AnyMapWrite<'a, M>>;
    type Pmap<'a> = Seldom<AnyPmap<'a, M>>;
    type Config = Locks;

    fn is_silent(locks: &Locks) -> bool {
        *locks == Locks::PerSlot
    }

    fn new(locks: &Locks) -> Self {
        match locks {
            Locks::OneLock => AnyLocking::OneLock(OneLock::new(&())),
            Locks::SxMap => AnyLocking::SxMap(SxMap::new(&())),
            Locks::VmMap => AnyLocking::VmMap(VmMap::new(&())),
            Locks::MmapLock { downgrades } => AnyLocking::MmapLock(MmapLock::new(downgrades)),
            Locks::PerSlot => AnyLocking::PerSlot,
        }
    }

    fn label(&self) {
        match self {
            AnyLocking::OneLock(locks) => locks.label(),
            AnyLocking::SxMap(locks) => locks.label(),
            AnyLocking::VmMap(locks) => locks.label(),
            AnyLocking::MmapLock(lock) => lock.label(),
            AnyLocking::PerSlot => {}
        }
    }

    #[inline]
    #[track_caller]
    fn read(&self) -> Seldom<AnyMapRead<'_, M>> {
        match self {
            AnyLocking::PerSlot => Seldom::NONE,
            _ => self.lock_to_read(),
        }
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> Seldom<AnyMapWrite<'_, M>> {
        match self {
            AnyLocking::PerSlot => Seldom::NONE,
            _ => self.lock_to_write(),
        }
    }

    #[inline]
    fn downgrades(&self) -> bool {
        matches!(self, AnyLocking::MmapLock(lock) if lock.downgrades())
    }

    #[inline]
    #[track_caller]
    fn downgrade(&self, write: &mut Seldom<AnyMapWrite<'_, M>>) {
        if let (AnyLocking::MmapLock(lock), Some(AnyMapWrite::MmapLock(write))) =
            (self, &mut **write)
        {
            lock.downgrade(write);
        }
    }

    #[inline]
    #[track_caller]
    fn pmap(&self) -> Seldom<AnyPmap<'_, M>> {
        match self {
            AnyLocking::PerSlot => Seldom::NONE,
            _ => self.lock_pmap(),
        }
    }

    #[inline]
    #[track_caller]
    fn try_pmap(&self) -> Option<Seldom<AnyPmap<'_, M>>> {
        Some(Seldom::some(match self {
            AnyLocking::OneLock(locks) => AnyPmap::OneLock(locks.try_pmap()?),
            AnyLocking::SxMap(locks) => AnyPmap::SxMap(locks.try_pmap()?),
            AnyLocking::VmMap(locks) => AnyPmap::VmMap(locks.try_pmap()?),
            AnyLocking::MmapLock(lock) => {
                lock.try_pmap()?;
                return Some(Seldom::NONE);
            }
            AnyLocking::PerSlot => return Some(Seldom::NONE),
        }))
    }
}

/// The locks, where there are some.
impl<M: Machine> AnyLocking<M> {
    #[inline(never)]
    #[track_caller]
    fn lock_to_read(&self) -> Seldom<AnyMapRead<'_, M>> {
        Seldom::some(match self {
            AnyLocking::OneLock(locks) => AnyMapRead::OneLock(locks.read()),
            AnyLocking::SxMap(locks) => AnyMapRead::SxMap(locks.read()),
            AnyLocking::VmMap(locks) => AnyMapRead::VmMap(locks.read()),
            AnyLocking::MmapLock(lock) => AnyMapRead::MmapLock(lock.read()),
            AnyLocking::PerSlot => return Seldom::NONE,
        })
    }

    #[inline(never)]
    #[track_caller]
    fn lock_to_write(&self) -> Seldom<AnyMapWrite<'_, M>> {
        Seldom::some(match self {
            AnyLocking::OneLock(locks) => AnyMapWrite::OneLock(locks.write()),
            AnyLocking::SxMap(locks) => AnyMapWrite::SxMap(locks.write()),
            AnyLocking::VmMap(locks) => AnyMapWrite::VmMap(locks.write()),
            AnyLocking::MmapLock(lock) => AnyMapWrite::MmapLock(lock.write()),
            AnyLocking::PerSlot => return Seldom::NONE,
        })
    }

    #[inline(never)]
    #[track_caller]
    fn lock_pmap(&self) -> Seldom<AnyPmap<'_, M>> {
        Seldom::some(match self {
            AnyLocking::OneLock(locks) => AnyPmap::OneLock(locks.pmap()),
            AnyLocking::SxMap(locks) => AnyPmap::SxMap(locks.pmap()),
            AnyLocking::VmMap(locks) => AnyPmap::VmMap(locks.pmap()),
            AnyLocking::MmapLock(lock) => {
                lock.pmap();
                return Seldom::NONE;
            }
            AnyLocking::PerSlot => return Seldom::NONE,
        })
    }
}

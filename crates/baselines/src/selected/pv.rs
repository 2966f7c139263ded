//! Locks of PV lists, chosen at run time.

use crate::freebsd::{ListLocks, PvListHeld, PvListLocks};
use crate::linux::Spinning;
use machine::{Frame, Machine};
use vm::Error;
use vm::lock::PvLock;
use vm::system::{Extent, Part, PvByteHeld, PvBytes, PvLocking};

/// The locks of PV lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PvLocks {
    /// `vm`'s own: a byte in each page, for which tasks sleep.
    #[default]
    Own,
    /// FreeBSD's locks, which pages share ([`PvListLocks`]).
    Shared(ListLocks),
    /// A byte in each page, for which tasks spin ([`Spinning`]).
    Spinning,
}

/// Locks of PV lists, chosen when they are made.
pub enum AnyPvLocks<M: Machine> {
    Shared(PvListLocks<M>),
    /// For [`PvLocks::Own`].
    Own(PvBytes),
    /// For [`PvLocks::Spinning`].
    Spinning(Spinning),
}

/// A locked PV list.
pub enum AnyPvHeld<'a, M: Machine> {
    /// For [`AnyPvLocks::Shared`].
    Shared(PvListHeld<'a, M>),
    /// For [`AnyPvLocks::Own`] and [`AnyPvLocks::Spinning`].
    Own(PvByteHeld<'a, M>),
}

impl<M: Machine> Part<M> for AnyPvLocks<M> {
    type Config = PvLocks;

    fn new(locks: &PvLocks, extent: Extent) -> Result<Self, Error> {
        Ok(match locks {
            PvLocks::Shared(shared) => AnyPvLocks::Shared(PvListLocks::new(shared, extent)?),
            PvLocks::Own => AnyPvLocks::Own(PvBytes),
            PvLocks::Spinning => AnyPvLocks::Spinning(Spinning),
        })
    }

    #[inline]
    fn is_silent(&self) -> bool {
        matches!(self, AnyPvLocks::Own(_))
    }

    fn label(&self) {
        if let AnyPvLocks::Shared(locks) = self {
            locks.label();
        }
    }
}

// SAFETY: either keeps the contract, and all calls of one value go to one of them.
unsafe impl<M: Machine> PvLocking<M> for AnyPvLocks<M> {
    type Held<'a> = AnyPvHeld<'a, M>;

    #[inline]
    fn is_per_block(&self) -> bool {
        matches!(self, AnyPvLocks::Shared(_))
    }

    #[inline]
    fn is_same(&self, one: Frame, other: Frame) -> bool {
        match self {
            AnyPvLocks::Shared(locks) => locks.is_same(one, other),
            AnyPvLocks::Own(_) | AnyPvLocks::Spinning(_) => one == other,
        }
    }

    #[inline]
    #[track_caller]
    fn lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> AnyPvHeld<'a, M> {
        match self {
            AnyPvLocks::Shared(locks) => AnyPvHeld::Shared(locks.lock(frame, own)),
            AnyPvLocks::Own(locks) => AnyPvHeld::Own(locks.lock(frame, own)),
            AnyPvLocks::Spinning(locks) => AnyPvHeld::Own(locks.lock(frame, own)),
        }
    }

    #[inline]
    #[track_caller]
    fn try_lock<'a>(&'a self, frame: Frame, own: &'a PvLock<M>) -> Option<AnyPvHeld<'a, M>> {
        Some(match self {
            AnyPvLocks::Shared(locks) => AnyPvHeld::Shared(locks.try_lock(frame, own)?),
            AnyPvLocks::Own(locks) => AnyPvHeld::Own(locks.try_lock(frame, own)?),
            AnyPvLocks::Spinning(_) => AnyPvHeld::Own(PvBytes.try_lock(frame, own)?),
        })
    }

    fn is_locked(&self, frame: Frame, own: &PvLock<M>) -> bool {
        match self {
            AnyPvLocks::Shared(locks) => locks.is_locked(frame, own),
            AnyPvLocks::Own(_) | AnyPvLocks::Spinning(_) => PvBytes.is_locked(frame, own),
        }
    }
}

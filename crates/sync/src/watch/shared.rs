//! The wrapper for reader-writer locks.

use super::locked::Held;
use super::{Kind, LockClass, Observer, Watched};
use core::panic::Location;
use machine::Machine;

// SAFETY: each locking and unlocking is one of the inner lock; the inner guards are private to the
// outer ones.
unsafe impl<M: Machine, R: lock_api::RawRwLock, C: LockClass, O: Observer<M>> lock_api::RawRwLock
    for Watched<M, R, C, O>
{
    const INIT: Self = Self::from_raw(R::INIT);

    type SharedGuard = Held<R::SharedGuard, O::Ticket>;
    type ExclusiveGuard = Held<R::ExclusiveGuard, O::Ticket>;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> Self::SharedGuard {
        self.acquire(
            self.attempt(Kind::Shared, Location::caller()),
            || self.raw.try_lock_shared(),
            || self.raw.lock_shared(),
        )
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<Self::SharedGuard> {
        self.try_acquire(Kind::Shared, Location::caller(), || {
            self.raw.try_lock_shared()
        })
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Self::SharedGuard) {
        // SAFETY: the caller's guard is from this lock, so its inner part is from `raw`.
        self.release(guard, |raw| unsafe { self.raw.unlock_shared(raw) });
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> Self::ExclusiveGuard {
        self.acquire(
            self.attempt(Kind::Exclusive, Location::caller()),
            || self.raw.try_lock_exclusive(),
            || self.raw.lock_exclusive(),
        )
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<Self::ExclusiveGuard> {
        self.try_acquire(Kind::Exclusive, Location::caller(), || {
            self.raw.try_lock_exclusive()
        })
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Self::ExclusiveGuard) {
        // SAFETY: the caller's guard is from this lock, so its inner part is from `raw`.
        self.release(guard, |raw| unsafe { self.raw.unlock_exclusive(raw) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

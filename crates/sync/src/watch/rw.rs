//! The wrapper for [`RawRw`].
//!
//! Its releases take no argument, so an acquisition carries nothing to its release: waits are
//! timed, holds are not. (`lock_api`'s guards carry it, see `shared`.)

use super::locked::Held;
use super::{Attempt, Kind, LockClass, Observer, Watched};
use crate::rwlock::RawRw;
use core::panic::Location;
use machine::Machine;

// SAFETY: each locking and unlocking is one of the inner lock.
unsafe impl<M: Machine, R: RawRw<M>, C: LockClass, O: Observer<M>> RawRw<M>
    for Watched<M, R, C, O>
{
    const NAME: &'static str = R::NAME;
    const MAY_SLEEP: bool = R::MAY_SLEEP;

    #[inline]
    fn new() -> Self {
        Self::from_raw(R::new())
    }

    #[inline]
    #[track_caller]
    fn read(&self) {
        let attempt = Attempt {
            may_sleep: R::MAY_SLEEP,
            ..self.attempt(Kind::Shared, Location::caller())
        };
        self.acquire(
            attempt,
            || self.raw.try_read().then_some(()),
            || self.raw.read(),
        );
    }

    #[inline]
    #[track_caller]
    fn try_read(&self) -> bool {
        let try_read = || self.raw.try_read().then_some(());
        self.try_acquire(Kind::Shared, Location::caller(), try_read)
            .is_some()
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: the caller has a read acquisition of this lock, and so one of `raw`.
        self.release(untimed(), |()| unsafe { self.raw.read_unlock() });
    }

    #[inline]
    #[track_caller]
    fn write(&self) {
        let attempt = Attempt {
            may_sleep: R::MAY_SLEEP,
            ..self.attempt(Kind::Exclusive, Location::caller())
        };
        self.acquire(
            attempt,
            || self.raw.try_write().then_some(()),
            || self.raw.write(),
        );
    }

    #[inline]
    #[track_caller]
    fn try_write(&self) -> bool {
        let try_write = || self.raw.try_write().then_some(());
        self.try_acquire(Kind::Exclusive, Location::caller(), try_write)
            .is_some()
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: the caller has the write acquisition of this lock, and so that of `raw`.
        self.release(untimed(), |()| unsafe { self.raw.write_unlock() });
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller has a read acquisition of this lock, and so one of `raw`.
        let upgraded = unsafe { self.raw.try_upgrade() };
        if upgraded {
            // The observer is told of a release and an acquisition; `raw` has done both in one
            // step.
            self.release(untimed(), |()| ());
            let taken = self.try_acquire(Kind::Exclusive, Location::caller(), || Some(()));
            debug_assert!(taken.is_some(), "it is held");
        }
        upgraded
    }

    #[inline]
    #[track_caller]
    unsafe fn try_downgrade(&self) -> bool {
        // SAFETY: the caller has the write acquisition of this lock, and so that of `raw`.
        let downgraded = unsafe { self.raw.try_downgrade() };
        if downgraded {
            // The observer is told of a release and an acquisition.
            self.release(untimed(), |()| ());
            let taken = self.try_acquire(Kind::Shared, Location::caller(), || Some(()));
            debug_assert!(taken.is_some(), "it is held");
        }
        downgraded
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.raw.is_write_locked()
    }
}

#[inline(always)]
fn untimed<T: Default>() -> Held<(), T> {
    Held::new((), T::default())
}

//! The wrapper for mutual exclusion.

use super::effort::effort;
use super::{Acquired, Attempt, DefaultObserver, Kind, LockClass, Observer, Wait};
use crate::RawLock;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::from_ref;
use machine::Machine;

/// The lock `R`, of class `C`, watched by `O`.
///
/// As large as `R` whatever the observer; with [`super::Off`] its operations take
/// `R`'s instructions. It is a [`RawLock`] if `R` is, and has `lock_api`'s traits that
/// `R` has.
pub struct Watched<M, R, C, O = DefaultObserver> {
    pub(super) raw: R,
    types: PhantomData<Types<M, C, O>>,
}

/// Types only: `Watched` is `Send` and `Sync` as the lock is.
type Types<M, C, O> = fn() -> (M, C, O);

/// What the holder of a watched lock gives back: the lock's part and the observer's.
///
/// It stays in its task: held locks are a task's.
pub struct Held<H, T> {
    raw: H,
    ticket: T,
    task: PhantomData<lock_api::GuardNoSend>,
}

impl<M: Machine, R, C: LockClass, O: Observer<M>> Watched<M, R, C, O> {
    /// The lock `raw`, watched from now on.
    #[inline]
    pub const fn from_raw(raw: R) -> Self {
        Watched {
            raw,
            types: PhantomData,
        }
    }

    /// The lock, to ask it what only it knows. Locking it goes unwatched.
    #[inline]
    pub fn raw(&self) -> &R {
        &self.raw
    }

    #[inline(always)]
    fn attempt(&self, kind: Kind, nested: bool, site: &'static Location<'static>) -> Attempt {
        Attempt {
            class: C::state(),
            lock: from_ref(&self.raw).addr(),
            kind,
            nested,
            site,
        }
    }

    /// Acquires by `lock`; `try_lock` is what finds out whether it must wait.
    #[inline(always)]
    pub(super) fn acquire<H>(
        &self,
        kind: Kind,
        nested: bool,
        site: &'static Location<'static>,
        try_lock: impl FnOnce() -> Option<H>,
        lock: impl FnOnce() -> H,
    ) -> Held<H, O::Ticket> {
        let attempt = self.attempt(kind, nested, site);
        O::before(&attempt);
        self.acquire_unordered(&attempt, try_lock, lock)
    }

    /// As [`Watched::acquire`], but that it says nothing of the order of locks.
    #[inline(always)]
    fn acquire_unordered<H>(
        &self,
        attempt: &Attempt,
        try_lock: impl FnOnce() -> Option<H>,
        lock: impl FnOnce() -> H,
    ) -> Held<H, O::Ticket> {
        let (raw, how) = if !O::asks_contention() {
            (lock(), Acquired::Unknown)
        } else if let Some(raw) = try_lock() {
            (raw, Acquired::Free)
        } else {
            let (raw, wait) = timed::<M, H>(lock);
            (raw, Acquired::Waited(wait))
        };
        let ticket = O::acquired(attempt, how);
        Held::new(raw, ticket)
    }

    /// Acquires by `try_lock` or not at all.
    #[inline(always)]
    pub(super) fn try_acquire<H>(
        &self,
        kind: Kind,
        site: &'static Location<'static>,
        try_lock: impl FnOnce() -> Option<H>,
    ) -> Option<Held<H, O::Ticket>> {
        let attempt = self.attempt(kind, false, site);
        match try_lock() {
            Some(raw) => Some(Held::new(raw, O::acquired(&attempt, Acquired::Tried))),
            None => {
                O::refused(&attempt);
                None
            }
        }
    }

    /// Releases by `unlock`.
    #[inline(always)]
    pub(super) fn release<H>(&self, held: Held<H, O::Ticket>, unlock: impl FnOnce(H)) {
        let Held {
            raw, mut ticket, ..
        } = held;
        O::releasing(C::state(), from_ref(&self.raw).addr(), &mut ticket);
        unlock(raw);
        O::released(ticket);
    }
}

impl<H, T> Held<H, T> {
    #[inline(always)]
    pub(super) fn new(raw: H, ticket: T) -> Self {
        Held {
            raw,
            ticket,
            task: PhantomData,
        }
    }
}

#[cold]
fn timed<M: Machine, H>(lock: impl FnOnce() -> H) -> (H, Wait) {
    let (spins, sleeps) = effort::<M>();
    let from = M::now();
    let raw = lock();
    let to = M::now();
    let (spun, slept) = effort::<M>();
    let wait = Wait {
        from,
        to,
        spins: spun.wrapping_sub(spins) as u64,
        sleeps: slept.wrapping_sub(sleeps) as u64,
    };
    (raw, wait)
}

impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> Watched<M, R, C, O> {
    /// As [`RawLock::lock`], while another lock of the class may be held already.
    #[inline]
    #[track_caller]
    pub fn lock_nested(&self) -> Held<R::Held, O::Ticket> {
        self.acquire(
            Kind::Exclusive,
            true,
            Location::caller(),
            || self.raw.try_lock(),
            || self.raw.lock(),
        )
    }
}

impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> Watched<M, R, C, O> {
    /// As [`RawLock::lock`], by a task that had the lock and has let it go to sleep: the locks it
    /// holds come after this one, and whoever waits for them lets this one go.
    #[inline]
    #[track_caller]
    pub fn lock_again(&self) -> Held<R::Held, O::Ticket> {
        let attempt = self.attempt(Kind::Exclusive, false, Location::caller());
        self.acquire_unordered(&attempt, || self.raw.try_lock(), || self.raw.lock())
    }
}

// SAFETY: locking and unlocking are the inner lock's, one for one; the inner `Held`
// is inside ours and can not be had otherwise.
unsafe impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> RawLock<M>
    for Watched<M, R, C, O>
{
    type Held = Held<R::Held, O::Ticket>;

    const NAME: &'static str = R::NAME;

    #[inline]
    fn new() -> Self {
        Self::from_raw(R::new())
    }

    #[inline]
    #[track_caller]
    fn lock(&self) -> Self::Held {
        self.acquire(
            Kind::Exclusive,
            false,
            Location::caller(),
            || self.raw.try_lock(),
            || self.raw.lock(),
        )
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Self::Held> {
        self.try_acquire(Kind::Exclusive, Location::caller(), || self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, held: Self::Held) {
        // SAFETY: the caller's `held` is from this lock, so its inner part is from `raw`.
        self.release(held, |raw| unsafe { self.raw.unlock(raw) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

// SAFETY: as for `RawLock`.
unsafe impl<M: Machine, R: lock_api::RawMutex, C: LockClass, O: Observer<M>> lock_api::RawMutex
    for Watched<M, R, C, O>
{
    const INIT: Self = Self::from_raw(R::INIT);

    type Guard = Held<R::Guard, O::Ticket>;

    #[inline]
    #[track_caller]
    fn lock(&self) -> Self::Guard {
        self.acquire(
            Kind::Exclusive,
            false,
            Location::caller(),
            || self.raw.try_lock(),
            || self.raw.lock(),
        )
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Self::Guard> {
        self.try_acquire(Kind::Exclusive, Location::caller(), || self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: as in `RawLock::unlock`.
        self.release(guard, |raw| unsafe { self.raw.unlock(raw) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

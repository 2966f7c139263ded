//! The wrapper for mutual exclusion.

use super::{Acquired, Attempt, DefaultObserver, Kind, LockClass, Observer, Wait};
use crate::effort::effort;
use crate::raw::RawLock;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::from_ref;
use machine::Machine;

/// The lock `R`, of class `C`, watched by `O`.
///
/// Its size is that of `R` whatever the observer; with [`super::Off`] its operations compile to
/// `R`'s instructions. It is a [`RawLock`] if `R` is, and implements those of `lock_api`'s traits
/// that `R` implements.
pub struct Watched<M, R, C, O = DefaultObserver> {
    pub(super) raw: R,
    types: PhantomData<Types<M, C, O>>,
}

/// Only for types: `Watched` is `Send` and `Sync` as the lock is.
type Types<M, C, O> = fn() -> (M, C, O);

/// The token that the holder of a watched lock hands to its release: the lock's token and the
/// observer's.
///
/// Not `Send`: a held lock belongs to its task.
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

    /// The inner lock, for its own queries. Locking it is not watched.
    #[inline]
    pub fn raw(&self) -> &R {
        &self.raw
    }

    #[inline(always)]
    pub(super) fn attempt(&self, kind: Kind, site: &'static Location<'static>) -> Attempt {
        Attempt {
            class: C::state(),
            lock: from_ref(&self.raw).addr(),
            kind,
            may_sleep: false,
            nested: false,
            site,
        }
    }

    /// Acquires by `lock`. If reading the clock costs time, `try_lock` first finds out if `lock`
    /// must wait; if it is free, `lock` takes the same path as unwatched, and reports its waiting
    /// itself.
    #[inline(always)]
    pub(super) fn acquire<H>(
        &self,
        attempt: Attempt,
        try_lock: impl FnOnce() -> Option<H>,
        lock: impl FnOnce() -> H,
    ) -> Held<H, O::Ticket> {
        O::before(&attempt);
        self.acquire_unordered(&attempt, try_lock, lock)
    }

    /// Acquires by `lock`, or by `try_lock` if that succeeds, without telling the lock-order
    /// checker.
    #[inline(always)]
    fn acquire_unordered<H>(
        &self,
        attempt: &Attempt,
        try_lock: impl FnOnce() -> Option<H>,
        lock: impl FnOnce() -> H,
    ) -> Held<H, O::Ticket> {
        O::acquiring(attempt);
        let (raw, how) = if M::FREE {
            // One call for both, so that the lock's stack frame lies where it would lie unwatched.
            let began = O::asks_contention().then(Began::<M>::now);
            if let Some(began) = &began {
                O::waiting(attempt, began.from);
            }
            let raw = lock();
            if let Some(began) = &began {
                O::waited(attempt, began.from);
            }
            (raw, began.map_or(Acquired::Unknown, |began| began.told()))
        } else if !O::asks_contention() {
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
        let attempt = self.attempt(kind, site);
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
        O::released(C::state(), ticket);
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

/// The beginning of an acquisition.
struct Began<M> {
    from: u64,
    effort: (usize, usize),
    machine: PhantomData<M>,
}

impl<M: Machine> Began<M> {
    fn now() -> Self {
        Began {
            effort: effort::<M>(),
            from: M::now(),
            machine: PhantomData,
        }
    }

    /// The wait that has just ended.
    fn wait(self) -> Wait {
        let to = M::now();
        let (spins, sleeps) = self.effort;
        let (spun, slept) = effort::<M>();
        Wait {
            from: self.from,
            to,
            spins: spun.wrapping_sub(spins) as u64,
            sleeps: slept.wrapping_sub(sleeps) as u64,
        }
    }

    /// How the lock was acquired, by its own report of its waiting.
    fn told(self) -> Acquired {
        let wait = self.wait();
        match wait.spins + wait.sleeps {
            0 => Acquired::Free,
            _ => Acquired::Waited(wait),
        }
    }
}

#[cold]
fn timed<M: Machine, H>(lock: impl FnOnce() -> H) -> (H, Wait) {
    let began = Began::<M>::now();
    let raw = lock();
    (raw, began.wait())
}

impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> Watched<M, R, C, O> {
    /// An attempt that waits as long as necessary.
    #[inline(always)]
    fn blocking(&self, site: &'static Location<'static>) -> Attempt {
        Attempt {
            may_sleep: R::MAY_SLEEP,
            ..self.attempt(Kind::Exclusive, site)
        }
    }

    /// Acquires the lock, while the task may already hold another lock of the class.
    #[inline]
    #[track_caller]
    pub fn lock_nested(&self) -> Held<R::Held, O::Ticket> {
        let nested = true;
        let attempt = self.blocking(Location::caller());
        let attempt = Attempt { nested, ..attempt };
        self.acquire(attempt, || self.raw.try_lock(), || self.raw.lock())
    }
}

impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> Watched<M, R, C, O> {
    /// Acquires the lock again for a task that released it to sleep. The task's other locks come
    /// after this one, and a task that waits for them releases this one.
    #[inline]
    #[track_caller]
    pub fn lock_again(&self) -> Held<R::Held, O::Ticket> {
        let attempt = self.blocking(Location::caller());
        self.acquire_unordered(&attempt, || self.raw.try_lock(), || self.raw.lock())
    }

    /// Leaves the held lock to the CPU, which continues with another context: the calling task no
    /// longer holds it. This only tells the observer.
    #[inline]
    pub fn hand_over(&self) {
        O::handed_over(C::state(), from_ref(&self.raw).addr());
    }

    /// Takes the lock that [`Watched::hand_over`] left to the CPU, for the context that the CPU
    /// continues with.
    #[inline]
    pub fn take_over(&self, site: &'static Location<'static>) {
        O::taken_over(&self.blocking(site));
    }
}

// SAFETY: each locking and unlocking is one of the inner lock; the inner `Held` is private to the
// outer one.
unsafe impl<M: Machine, R: RawLock<M>, C: LockClass, O: Observer<M>> RawLock<M>
    for Watched<M, R, C, O>
{
    type Held = Held<R::Held, O::Ticket>;

    const NAME: &'static str = R::NAME;
    const MAY_SLEEP: bool = R::MAY_SLEEP;

    #[inline]
    fn new() -> Self {
        Self::from_raw(R::new())
    }

    #[inline]
    #[track_caller]
    fn lock(&self) -> Self::Held {
        let attempt = self.blocking(Location::caller());
        self.acquire(attempt, || self.raw.try_lock(), || self.raw.lock())
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

// SAFETY: each locking and unlocking is one of the inner lock; the inner guard state is private to
// the outer one.
unsafe impl<M: Machine, R: lock_api::RawMutex, C: LockClass, O: Observer<M>> lock_api::RawMutex
    for Watched<M, R, C, O>
{
    const INIT: Self = Self::from_raw(R::INIT);

    type Guard = Held<R::Guard, O::Ticket>;

    #[inline]
    #[track_caller]
    fn lock(&self) -> Self::Guard {
        // `lock_api` does not tell if its locks sleep.
        let attempt = self.attempt(Kind::Exclusive, Location::caller());
        self.acquire(attempt, || self.raw.try_lock(), || self.raw.lock())
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Self::Guard> {
        self.try_acquire(Kind::Exclusive, Location::caller(), || self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: the caller's guard state is from this lock, so its inner part is from `raw`.
        self.release(guard, |raw| unsafe { self.raw.unlock(raw) });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

//! A spin lock that a CPU holds while it goes from one context to another: taken by the context
//! that leaves, released by the one that goes on.
//!
//! # Protocol
//! An acquisition returns a token, which the release needs. The holder keeps it in the lock itself,
//! so the next context finds it there. The lock-order checker records held locks by task: from
//! [`Locked::hand_over`] until [`Handed::take_over`] no task holds the lock for it, so a task may
//! leave its CPU in between.

use core::cell::UnsafeCell;
use core::panic::Location;
use machine::Machine;
use sync::RawLock;
use sync::watch::{LockClass, Watched};

type Held<M, R, C> = <Watched<M, R, C> as RawLock<M>>::Held;

/// The lock `R`, of class `C`.
pub struct Handed<M: Machine, R: RawLock<M>, C: LockClass> {
    lock: Watched<M, R, C>,
    held: Kept<Held<M, R, C>>,
}

/// The token for the release. Owned by the lock's holder.
struct Kept<T>(UnsafeCell<Option<T>>);

// SAFETY: only the lock's holder touches it, and the lock orders holders.
unsafe impl<T> Send for Kept<T> {}
// SAFETY: only the lock's holder touches it, also through a shared reference.
unsafe impl<T> Sync for Kept<T> {}

/// A held [`Handed`]; dropping it releases the lock.
#[must_use = "the lock is released when this is dropped"]
pub struct Locked<'a, M: Machine, R: RawLock<M>, C: LockClass>(&'a Handed<M, R, C>);

impl<M: Machine, R: RawLock<M>, C: LockClass> Handed<M, R, C> {
    /// An unlocked lock.
    pub fn new() -> Self {
        Handed {
            lock: RawLock::new(),
            held: Kept(UnsafeCell::new(None)),
        }
    }

    /// Acquires the lock.
    #[track_caller]
    pub fn lock(&self) -> Locked<'_, M, R, C> {
        self.locked(self.lock.lock())
    }

    /// Acquires the lock as the second of its class: the caller holds one that comes before it.
    #[track_caller]
    pub fn lock_second(&self) -> Locked<'_, M, R, C> {
        self.locked(self.lock.lock_nested())
    }

    /// Takes over the lock that [`Locked::hand_over`] left to the calling CPU.
    #[track_caller]
    pub fn take_over(&self) -> Locked<'_, M, R, C> {
        self.lock.take_over(Location::caller());
        Locked(self)
    }

    fn locked(&self, held: Held<M, R, C>) -> Locked<'_, M, R, C> {
        // SAFETY: the caller has just acquired the lock.
        unsafe { *self.held.0.get() = Some(held) };
        Locked(self)
    }
}

impl<M: Machine, R: RawLock<M>, C: LockClass> Default for Handed<M, R, C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine, R: RawLock<M>, C: LockClass> Locked<'_, M, R, C> {
    /// Leaves the lock held by the calling CPU, for [`Handed::take_over`] there.
    pub fn hand_over(self) {
        self.0.lock.hand_over();
        core::mem::forget(self);
    }
}

impl<M: Machine, R: RawLock<M>, C: LockClass> Drop for Locked<'_, M, R, C> {
    fn drop(&mut self) {
        // SAFETY: a `Locked` is the lock's only holder.
        let held = unsafe { (*self.0.held.0.get()).take() };
        if let Some(held) = held {
            // SAFETY: `held` comes from this lock's acquisition, and is taken only once.
            unsafe { self.0.lock.unlock(held) };
        }
    }
}

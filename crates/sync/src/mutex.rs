//! Data behind a raw lock.

use crate::raw::RawLock;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use machine::{Machine, SharedCell};

/// A `T` that is accessed under a lock of kind `R`, on any machine.
///
/// `lock_api::Mutex` offers more, but needs a machine whose atomics have constants and hides its
/// data from a checker; every machine sees this one's. A panic poisons nothing: the guard's drop
/// releases the lock.
pub struct Mutex<M: Machine, R: RawLock<M>, T: Send> {
    raw: R,
    data: M::Cell<T>,
}

/// Access to the data; the lock is released when this is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct MutexGuard<'a, M: Machine, R: RawLock<M>, T: Send> {
    mutex: &'a Mutex<M, R, T>,
    held: ManuallyDrop<R::Held>,
    /// The task that acquires the lock releases it.
    not_send: PhantomData<*mut ()>,
}

// SAFETY: a shared guard gives shared access to the data, and nothing else.
unsafe impl<M: Machine, R: RawLock<M>, T: Send + Sync> Sync for MutexGuard<'_, M, R, T> {}

impl<M: Machine, R: RawLock<M>, T: Send> Mutex<M, R, T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Mutex {
            raw: R::new(),
            data: M::Cell::new(value),
        }
    }

    /// Acquires the lock, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, M, R, T> {
        self.guard(self.raw.lock())
    }

    /// Acquires the lock if that needs no waiting.
    #[inline]
    #[track_caller]
    #[must_use = "without a guard the lock is not held"]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, M, R, T>> {
        self.raw.try_lock().map(|held| self.guard(held))
    }

    /// Returns true if the lock was held a moment ago.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Takes the data out.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    #[inline]
    fn guard(&self, held: R::Held) -> MutexGuard<'_, M, R, T> {
        MutexGuard {
            mutex: self,
            held: ManuallyDrop::new(held),
            not_send: PhantomData,
        }
    }
}

impl<M: Machine, R: RawLock<M>, T: Send + Default> Default for Mutex<M, R, T> {
    /// An unlocked mutex with the default value.
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<M: Machine, R: RawLock<M>, T: Send> Deref for MutexGuard<'_, M, R, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, and the borrow of the guard rules out a mutable
        // reference.
        unsafe { &*self.mutex.data.read() }
    }
}

impl<M: Machine, R: RawLock<M>, T: Send> DerefMut for MutexGuard<'_, M, R, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed exclusively.
        unsafe { &mut *self.mutex.data.write() }
    }
}

impl<M: Machine, R: RawLock<M>, T: Send> Drop for MutexGuard<'_, M, R, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `held` is from this lock, and taken once, here.
        unsafe { self.mutex.raw.unlock(ManuallyDrop::take(&mut self.held)) }
    }
}

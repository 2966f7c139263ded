//! Data behind a reader-writer lock.

use super::RawRw;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use machine::{Machine, SharedCell};

/// A value behind the lock `R`.
pub struct RwLock<M: Machine, R: RawRw<M>, T: Send> {
    raw: R,
    value: M::Cell<T>,
}

// SAFETY: readers on several CPUs share the value, and a writer may take it elsewhere.
unsafe impl<M: Machine, R: RawRw<M>, T: Send + Sync> Sync for RwLock<M, R, T> {}
// SAFETY: the lock moves with the value.
unsafe impl<M: Machine, R: RawRw<M>, T: Send> Send for RwLock<M, R, T> {}

/// Shared access to the value; its task releases it by dropping it.
#[must_use = "the lock is released when this is dropped"]
pub struct ReadGuard<'a, M: Machine, R: RawRw<M>, T: Send> {
    lock: &'a RwLock<M, R, T>,
    value: &'a T,
    not_send: PhantomData<*mut ()>,
}

/// Exclusive access to the value; its task releases it by dropping it.
#[must_use = "the lock is released when this is dropped"]
pub struct WriteGuard<'a, M: Machine, R: RawRw<M>, T: Send> {
    lock: &'a RwLock<M, R, T>,
    value: *mut T,
}

impl<M: Machine, R: RawRw<M>, T: Send> RwLock<M, R, T> {
    /// An unlocked lock around `value`.
    pub fn new(value: T) -> Self {
        RwLock {
            raw: R::new(),
            value: M::Cell::new(value),
        }
    }

    /// Waits for shared access. The calling task must not have it already.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> ReadGuard<'_, M, R, T> {
        self.raw.read();
        self.reader()
    }

    /// Acquires shared access if no wait is needed.
    #[inline]
    #[track_caller]
    #[must_use = "without a guard the lock is not held"]
    pub fn try_read(&self) -> Option<ReadGuard<'_, M, R, T>> {
        self.raw.try_read().then(|| self.reader())
    }

    /// Waits for exclusive access.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> WriteGuard<'_, M, R, T> {
        self.raw.write();
        self.writer()
    }

    /// Acquires exclusive access if no wait is needed.
    #[inline]
    #[track_caller]
    #[must_use = "without a guard the lock is not held"]
    pub fn try_write(&self) -> Option<WriteGuard<'_, M, R, T>> {
        self.raw.try_write().then(|| self.writer())
    }

    /// The lock itself.
    pub fn raw(&self) -> &R {
        &self.raw
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    fn reader(&self) -> ReadGuard<'_, M, R, T> {
        ReadGuard {
            lock: self,
            // SAFETY: the caller has read-locked, so no task writes the value until the guard
            // releases the lock.
            value: unsafe { &*self.value.read() },
            not_send: PhantomData,
        }
    }

    fn writer(&self) -> WriteGuard<'_, M, R, T> {
        WriteGuard {
            lock: self,
            value: self.value.write(),
        }
    }
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<M: Machine, R: RawRw<M>, T: Send + Sync> Sync for ReadGuard<'_, M, R, T> {}
// SAFETY: a shared guard gives out `&T` only.
unsafe impl<M: Machine, R: RawRw<M>, T: Send + Sync> Sync for WriteGuard<'_, M, R, T> {}

impl<M: Machine, R: RawRw<M>, T: Send> Deref for ReadGuard<'_, M, R, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<M: Machine, R: RawRw<M>, T: Send> Deref for WriteGuard<'_, M, R, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held for writing while the guard lives.
        unsafe { &*self.value }
    }
}

impl<M: Machine, R: RawRw<M>, T: Send> DerefMut for WriteGuard<'_, M, R, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held for writing while the guard lives, and the guard is borrowed
        // exclusively.
        unsafe { &mut *self.value }
    }
}

impl<M: Machine, R: RawRw<M>, T: Send> Drop for ReadGuard<'_, M, R, T> {
    #[inline]
    fn drop(&mut self) {
        // The checker sees an access at one instant, so it is told of the last one, too.
        self.lock.value.read();
        // SAFETY: the guard stands for one read acquisition.
        unsafe { self.lock.raw.read_unlock() };
    }
}

impl<M: Machine, R: RawRw<M>, T: Send> Drop for WriteGuard<'_, M, R, T> {
    #[inline]
    fn drop(&mut self) {
        // The checker sees an access at one instant, so it is told of the last one, too.
        self.lock.value.write();
        // SAFETY: the guard stands for the write acquisition.
        unsafe { self.lock.raw.write_unlock() };
    }
}

//! Reader-writer locks: the contract, the locks, and a value behind one.

mod data;
mod freebsd;
mod rwsem;
mod spin_park;

pub use data::{ReadGuard, RwLock, WriteGuard};
pub use freebsd::FreebsdRw;
pub use rwsem::Rwsem;
pub use spin_park::SpinParkRw;

use core::marker::PhantomData;
use machine::Machine;

/// A reader-writer lock without data.
///
/// # Safety
/// While a write acquisition is not released there is no other acquisition. Acquiring has acquire
/// semantics, releasing release semantics: a writer synchronizes with all before it, a reader with
/// the writers before it.
pub unsafe trait RawRw<M: Machine>: Send + Sync {
    /// The lock's name, as the command prints it.
    const NAME: &'static str;

    /// True if a task that waits for the lock may sleep
    /// ([`RawLock::MAY_SLEEP`](crate::RawLock::MAY_SLEEP)).
    const MAY_SLEEP: bool = false;

    /// An unlocked lock.
    fn new() -> Self;

    /// Acquires the lock together with other readers, waiting as long as it takes. A task that
    /// already holds it for reading must not call this: a writer may have come in between.
    fn read(&self);

    /// Acquires the lock for reading if no wait is needed.
    #[must_use = "a lock that was acquired must be released"]
    fn try_read(&self) -> bool;

    /// Releases a read acquisition.
    ///
    /// # Safety
    /// The caller holds a read acquisition.
    unsafe fn read_unlock(&self);

    /// Acquires the lock alone, waiting as long as it takes.
    fn write(&self);

    /// Acquires the lock alone if no wait is needed.
    #[must_use = "a lock that was acquired must be released"]
    fn try_write(&self) -> bool;

    /// Releases the write acquisition.
    ///
    /// # Safety
    /// The caller holds the write acquisition.
    unsafe fn write_unlock(&self);

    /// Turns the caller's read acquisition into the write acquisition, if the lock can do that and
    /// no other task reads. Returns true if it did.
    ///
    /// # Safety
    /// The caller holds a read acquisition, and still holds it if this returns `false`.
    #[must_use = "without it the lock is still held for reading"]
    unsafe fn try_upgrade(&self) -> bool {
        false
    }

    /// Turns the caller's write acquisition into one for reading, if the lock can do that. Returns
    /// true if it did.
    ///
    /// # Safety
    /// The caller holds the write acquisition, and still holds it if this returns `false`.
    #[must_use = "without it the lock is still held for writing"]
    unsafe fn try_downgrade(&self) -> bool {
        false
    }

    /// Returns true if the lock was held a moment ago.
    fn is_locked(&self) -> bool;

    /// Returns true if a moment ago a writer held the lock or waited for readers to leave.
    fn is_write_locked(&self) -> bool;
}

/// A [`RawRw`] held for reading, for code that keeps a lock apart from its data.
#[must_use = "the lock is released when this is dropped"]
pub struct RawReadGuard<'a, M: Machine, R: RawRw<M>>(&'a R, PhantomData<fn() -> M>);

impl<'a, M: Machine, R: RawRw<M>> RawReadGuard<'a, M, R> {
    /// Acquires `lock` for reading, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn new(lock: &'a R) -> Self {
        lock.read();
        RawReadGuard(lock, PhantomData)
    }
}

impl<M: Machine, R: RawRw<M>> Drop for RawReadGuard<'_, M, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard was made when the lock was acquired for reading.
        unsafe { self.0.read_unlock() };
    }
}

/// A [`RawRw`] held for writing, for code that keeps a lock apart from its data.
#[must_use = "the lock is released when this is dropped"]
pub struct RawWriteGuard<'a, M: Machine, R: RawRw<M>>(&'a R, PhantomData<fn() -> M>);

impl<'a, M: Machine, R: RawRw<M>> RawWriteGuard<'a, M, R> {
    /// Acquires `lock` for writing, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn new(lock: &'a R) -> Self {
        lock.write();
        RawWriteGuard(lock, PhantomData)
    }
}

impl<M: Machine, R: RawRw<M>> Drop for RawWriteGuard<'_, M, R> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard was made when the lock was acquired for writing.
        unsafe { self.0.write_unlock() };
    }
}

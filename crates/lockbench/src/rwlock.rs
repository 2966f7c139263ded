//! Reader-writer locks: lock and unlock for reading, or for writing.

use super::subject::{Subject, free};
use machine::{CpuRange, Machine};
use parking_lot::lock_api::RawRwLock;
use std::marker::PhantomData;
use sync::rwlock::RawRw;

/// A reader-writer lock of any origin.
pub trait Either: Send + Sync + 'static {
    /// A new lock, unlocked.
    fn new() -> Self;
    /// Runs `section` with the lock held for reading.
    fn read(&self, section: impl FnOnce());
    /// Runs `section` with the lock held for writing.
    fn write(&self, section: impl FnOnce());
    /// Returns true if the lock is free.
    fn is_free(&self) -> bool;
}

/// The operation: reading.
pub enum Read {}
/// The operation: writing.
pub enum Write {}

/// Reading or writing.
pub trait Mode: 'static {
    /// True for writing.
    const WRITES: bool;
}

impl Mode for Read {
    const WRITES: bool = false;
}

impl Mode for Write {
    const WRITES: bool = true;
}

/// A lock and an operation.
pub struct By<L, O>(L, PhantomData<fn() -> O>);

impl<L: Either, O: Mode> Subject for By<L, O> {
    const EXCLUSIVE: bool = O::WRITES;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        By(L::new(), PhantomData)
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        if O::WRITES {
            self.0.write(section)
        } else {
            self.0.read(section)
        }
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        free(self.0.is_free())
    }
}

/// One of `sync`'s.
pub struct Ours<M, L>(L, PhantomData<fn() -> M>);

impl<M: Machine, L: RawRw<M> + 'static> Either for Ours<M, L> {
    fn new() -> Self {
        Ours(L::new(), PhantomData)
    }

    #[inline(always)]
    fn read(&self, section: impl FnOnce()) {
        self.0.read();
        section();
        // SAFETY: locked above.
        unsafe { self.0.read_unlock() };
    }

    #[inline(always)]
    fn write(&self, section: impl FnOnce()) {
        self.0.write();
        section();
        // SAFETY: locked above.
        unsafe { self.0.write_unlock() };
    }

    fn is_free(&self) -> bool {
        !self.0.is_locked()
    }
}

impl Either for parking_lot::RawRwLock {
    fn new() -> Self {
        <Self as RawRwLock>::INIT
    }

    #[inline(always)]
    fn read(&self, section: impl FnOnce()) {
        let guard = self.lock_shared();
        section();
        // SAFETY: locked above.
        unsafe { self.unlock_shared(guard) };
    }

    #[inline(always)]
    fn write(&self, section: impl FnOnce()) {
        let guard = self.lock_exclusive();
        section();
        // SAFETY: locked above.
        unsafe { self.unlock_exclusive(guard) };
    }

    fn is_free(&self) -> bool {
        !self.is_locked()
    }
}

impl Either for std::sync::RwLock<()> {
    fn new() -> Self {
        Self::new(())
    }

    #[inline(always)]
    fn read(&self, section: impl FnOnce()) {
        let guard = self.read();
        section();
        drop(guard);
    }

    #[inline(always)]
    fn write(&self, section: impl FnOnce()) {
        let guard = self.write();
        section();
        drop(guard);
    }

    fn is_free(&self) -> bool {
        self.try_write().is_ok()
    }
}

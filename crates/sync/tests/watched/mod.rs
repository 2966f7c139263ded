//! Simple locks to be watched.

use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};
use sync::RawLock;
use sync::watch::{note_sleep, note_spins};

/// A test-and-set lock, 1 byte.
pub struct Tas<M: Machine>(M::AtomicU8);

// SAFETY: the exchange and the store are the textbook lock.
unsafe impl<M: Machine> RawLock<M> for Tas<M> {
    type Held = ();
    const NAME: &'static str = "tas";

    fn new() -> Self {
        Tas(M::AtomicU8::new(0))
    }
    #[inline]
    fn lock(&self) {
        while self.try_lock().is_none() {
            M::spin_until(|| self.0.load(Ordering::Relaxed) == 0);
        }
    }
    #[inline]
    fn try_lock(&self) -> Option<()> {
        // No swap: a checker may order a waiter's store before the release.
        let taken = self
            .0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then_some(())
    }
    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.0.store(0, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

// SAFETY: a compare-and-swap of 0 sets it, and the owner clears it.
unsafe impl<M: Machine> lock_api::RawMutex for Tas<M>
where
    M::AtomicU8: ConstInit,
{
    const INIT: Self = Tas(M::AtomicU8::ZERO);
    type Guard = ();

    fn lock(&self) {
        RawLock::<M>::lock(self);
    }
    fn try_lock(&self) -> Option<()> {
        RawLock::<M>::try_lock(self)
    }
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the contract is that of the inner operation.
        unsafe { RawLock::<M>::unlock(self, ()) };
    }
    fn is_locked(&self) -> bool {
        RawLock::<M>::is_locked(self)
    }
}

/// A test-and-set lock that counts its waiters, and reports one spin and two sleeps for each.
pub struct Gate<M: Machine> {
    lock: Tas<M>,
    waiters: M::AtomicU32,
}

impl<M: Machine> Gate<M> {
    pub fn waiters(&self) -> u32 {
        self.waiters.load(Ordering::Acquire)
    }
}

// SAFETY: all operations are the inner lock's.
unsafe impl<M: Machine> RawLock<M> for Gate<M> {
    type Held = ();
    const NAME: &'static str = "gate";

    fn new() -> Self {
        Gate {
            lock: Tas::new(),
            waiters: M::AtomicU32::new(0),
        }
    }
    fn lock(&self) {
        if self.lock.try_lock().is_none() {
            self.waiters.fetch_add(1, Ordering::AcqRel);
            self.lock.lock();
            self.waiters.fetch_sub(1, Ordering::AcqRel);
            note_spins::<M>(1);
            note_sleep::<M>();
            note_sleep::<M>();
        }
    }
    fn try_lock(&self) -> Option<()> {
        self.lock.try_lock()
    }
    unsafe fn unlock(&self, (): ()) {
        // SAFETY: the contract is that of the inner operation.
        unsafe { self.lock.unlock(()) };
    }
    fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }
}

/// A reader-writer lock: readers in the low bits, the writer in the highest.
pub struct Rw<M: Machine>(M::AtomicU32);

const WRITER: u32 = 1 << 31;

// SAFETY: readers count up only where there is no writer, a writer comes only where
// there is neither.
unsafe impl<M: Machine> lock_api::RawRwLock for Rw<M>
where
    M::AtomicU32: ConstInit,
{
    const INIT: Self = Rw(M::AtomicU32::ZERO);
    type SharedGuard = ();
    type ExclusiveGuard = ();

    fn lock_shared(&self) {
        M::spin_until(|| self.try_lock_shared().is_some());
    }
    fn try_lock_shared(&self) -> Option<()> {
        let n = self.0.load(Ordering::Relaxed);
        let more = |n| {
            self.0
                .compare_exchange(n, n + 1, Ordering::Acquire, Ordering::Relaxed)
        };
        (n & WRITER == 0 && more(n).is_ok()).then_some(())
    }
    unsafe fn unlock_shared(&self, (): ()) {
        self.0.fetch_sub(1, Ordering::Release);
    }
    fn lock_exclusive(&self) {
        M::spin_until(|| self.try_lock_exclusive().is_some());
    }
    fn try_lock_exclusive(&self) -> Option<()> {
        let taken = self
            .0
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then_some(())
    }
    unsafe fn unlock_exclusive(&self, (): ()) {
        self.0.store(0, Ordering::Release);
    }
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
    fn is_locked_exclusive(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WRITER
    }
}

//! Test-and-test-and-set with bounded exponential backoff.
//!
//! ```text
//! lock:    until cas(held, 0, 1):
//!              wait until held == 0; after a lost race, delay 1, 2, 4 … 64 pauses
//! unlock:  held = 0
//! ```
//!
//! Waiters read, so they share the cache line until a release; they write only when the lock looked
//! free. Not fair: the CPU that released last often wins again, which is good for throughput and
//! lets others starve.

use crate::ecosystem::impl_lock_apis;
use crate::effort::note_spins;
use crate::raw::RawLock;
use machine::{Atomic, ConstInit, Machine, Ordering};

/// The longest delay after a lost race, in pauses.
const MAX_BACKOFF: u32 = 64;

/// How often a waiter reads the lock before it lets other tasks run.
const LOOKS: u32 = 256;

/// The lock: 1 byte. With `YIELDS` its holder may leave its CPU, so a waiter that is not pinned
/// sometimes lets other tasks run, since one of them may be the holder.
pub struct TestAndSet<M: Machine, const YIELDS: bool = false> {
    /// 1 while a task holds the lock.
    held: M::AtomicU8,
}

impl<M: Machine, const YIELDS: bool> TestAndSet<M, YIELDS> {
    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. Not a blind swap: only the
        // holder writes, so a lost race leaves no store behind.
        self.held
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let mut round = 0;
        let mut backoff = 1;
        loop {
            while self.held.load(Ordering::Relaxed) != 0 {
                M::relax(round);
                round = round.saturating_add(1);
                if YIELDS && round.is_multiple_of(LOOKS) && M::pins() == 0 {
                    M::yield_now();
                }
            }
            if self.take() {
                return note_spins::<M>(round);
            }
            M::delay(backoff);
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }
}

// SAFETY: only the exchange of 0 for 1 acquires, and only the holder writes 0.
unsafe impl<M: Machine, const YIELDS: bool> RawLock<M> for TestAndSet<M, YIELDS> {
    type Held = ();
    const NAME: &'static str = "tas";

    fn new() -> Self {
        TestAndSet {
            held: M::AtomicU8::new(0),
        }
    }

    #[inline]
    fn lock(&self) {
        if !self.take() {
            self.lock_contended();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (!self.is_locked() && self.take()).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // Release: pairs with the acquire in `take`.
        self.held.store(0, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.held.load(Ordering::Relaxed) != 0
    }
}

impl_lock_apis!(
    [M: Machine<AtomicU8: ConstInit>] TestAndSet<M> = TestAndSet { held: ConstInit::ZERO }
);

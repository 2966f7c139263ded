//! The adaptive mutex: it records its owner; a waiter spins while the owner may be running, then
//! blocks on a turnstile (FreeBSD's `mutex(9)`).
//!
//! The word holds the owner's identity. A waiter that sees a new owner knows that the lock is being
//! passed on, and continues to spin. If the machine says which task runs ([`Tasks::is_running`]), a
//! waiter spins while the owner runs, as in FreeBSD; otherwise it assumes that an owner that stays
//! for a whole spin does not run.
//!
//! [`Tasks::is_running`]: machine::Tasks::is_running

pub use crate::blocking::{BackOff, LockDelay, YieldSoon};
use crate::blocking::{Blocking, Pointer};
use crate::ecosystem::impl_lock_apis;
use crate::raw::RawLock;
use core::ptr;
use machine::{ConstInit, Machine};

/// Rounds of spinning on one owner before a task blocks.
const SPINS: u32 = 40;

/// A mutex of 8 bytes that records its owner. The task that acquires it must release it.
///
/// A task spins on the same owner for `SPINS` rounds before it blocks; `B` says how it passes the
/// time between them.
pub struct Adaptive<M: Machine, const SPINS: u32 = { self::SPINS }, B = YieldSoon> {
    inner: Blocking<M, Pointer<M>, SPINS, B>,
}

/// FreeBSD's mutex (`mtx`) of 2018: a waiter spins while the owner runs, with [`LockDelay`], and
/// otherwise blocks on a turnstile. If the machine does not know, an owner that stays for 13 waits
/// in a row, about 16,000 pauses, counts as not running.
pub type FreebsdMutex<M> = Adaptive<M, 13, LockDelay>;

/// The calling task: the address of its local words, which is unique while the task lives and has
/// its low bits free.
#[inline]
fn me<M: Machine>() -> usize {
    M::with_locals(|locals| ptr::from_ref(locals) as usize)
}

// SAFETY: `Blocking`'s protocol: an owner enters the word by a compare-and-swap of a value without
// an owner, with acquire, and leaves it with release.
unsafe impl<M: Machine, const SPINS: u32, B: BackOff> RawLock<M> for Adaptive<M, SPINS, B> {
    type Held = ();
    const NAME: &'static str = "adaptive";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        Adaptive {
            inner: Blocking::new(),
        }
    }

    #[inline]
    fn lock(&self) {
        let me = me::<M>();
        if let Err(word) = self.inner.lock_fast(me) {
            self.lock_slow(me, word);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.inner.try_lock(me::<M>()).ok()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // The word is not read first: if a waiter has just read it, that would fetch the line for
        // reading, and then once more for the release.
        if self.inner.unlock(me::<M>()) {
            self.wake();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.owner() != 0
    }
}

impl<M: Machine, const SPINS: u32, B: BackOff> Adaptive<M, SPINS, B> {
    /// Returns true if the calling task holds the lock. Exact.
    pub fn is_mine(&self) -> bool {
        self.inner.owner() == me::<M>()
    }

    #[cold]
    fn lock_slow(&self, me: usize, word: usize) {
        self.inner.lock_slow(me, word);
    }

    #[cold]
    fn wake(&self) {
        self.inner.wake();
    }
}

impl_lock_apis!(
    [M: Machine<AtomicUsize: ConstInit>, const SPINS: u32, B: BackOff] Adaptive<M, SPINS, B> =
        Adaptive { inner: Blocking::ZERO }
);

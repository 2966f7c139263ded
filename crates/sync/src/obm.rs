//! OBM: the one-byte mutex (case study 002).
//!
//! Small enough for one in each page. An uncontended acquisition and its release are one inline
//! read-modify-write each; a task that finds the lock taken spins a little, then blocks on a
//! turnstile, and competes for the lock again when woken. Case study 002 shares turnstiles between
//! neighbouring pages. Here the key of the turnstile is the byte's own address, so no task is woken
//! because of a neighbouring page.

mod restricted;

pub use crate::blocking::YieldMore;
pub use restricted::RestrictedObm;

use crate::blocking::{BackOff, Blocking, Byte, YieldSoon};
use crate::ecosystem::impl_lock_apis;
use crate::padded::Padded;
use crate::raw::RawLock;
use core::sync::atomic::AtomicU64;
use machine::{ConstInit, Machine, Ordering, Pinned};

/// Rounds of spinning before a task blocks.
const SPINS: u32 = 40;

/// The owner in the byte of a held lock, above the bits of `blocking`.
const LOCKED: usize = 4;

/// A mutex in one byte.
///
/// A task spins for `SPINS` rounds before it blocks, waiting in each as `B` says. Not FIFO: a
/// running task may overtake a sleeping one, but sleepers are woken in turn.
pub struct Obm<M: Machine, const SPINS: u32 = { self::SPINS }, B: BackOff = YieldSoon> {
    inner: Blocking<M, Byte<M>, SPINS, B>,
}

/// The one-byte mutex for threads that share their CPUs with others, as those of a process do: 12
/// rounds, mostly of yields. An owner that is off its CPU stays off for longer than these rounds
/// take.
pub type Threads<M> = Obm<M, 12, YieldMore>;

// SAFETY: `Blocking`'s protocol: a compare-and-swap of a value without LOCKED sets it, with
// acquire, and the owner clears it with release.
unsafe impl<M: Machine, const SPINS: u32, B: BackOff> RawLock<M> for Obm<M, SPINS, B> {
    type Held = ();
    const NAME: &'static str = "obm";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        Obm {
            inner: Blocking::new(),
        }
    }

    #[inline]
    fn lock(&self) {
        if self.inner.lock_fast(LOCKED).is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.inner.try_lock(LOCKED).ok()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        if self.inner.unlock(LOCKED) {
            self.wake();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.owner() != 0
    }
}

impl<M: Machine, const SPINS: u32, B: BackOff> Obm<M, SPINS, B> {
    #[cold]
    fn lock_slow(&self) {
        if let Err(word) = self.inner.try_lock(LOCKED) {
            count::<M>(|counts| &counts.lock);
            self.inner.lock_slow(LOCKED, word);
        }
    }

    #[cold]
    fn wake(&self) {
        if self.inner.wake() {
            count::<M>(|counts| &counts.unlock);
        }
    }
}

impl_lock_apis!(
    [M: Machine<AtomicU8: ConstInit>, const SPINS: u32, B: BackOff] Obm<M, SPINS, B> = Obm {
        inner: Blocking::ZERO,
    }
);

/// Slow paths taken on all one-byte mutexes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SlowPaths {
    /// Acquisitions that found the byte taken, so they spun or blocked.
    pub slow_lock: u64,
    /// Releases that woke a blocked task.
    pub slow_unlock: u64,
}

/// The counts since the machine began; each is exact while no task is counting.
pub fn slow_paths<M: Machine>() -> SlowPaths {
    let mut sum = SlowPaths::default();
    for stripe in &counters::<M>().0 {
        sum.slow_lock += stripe.lock.load(Ordering::Relaxed);
        sum.slow_unlock += stripe.unlock.load(Ordering::Relaxed);
    }
    sum
}

/// Counters that CPUs hardly share: 128 bytes each. `core`'s atomics, not the machine's: they
/// describe the run and are not part of what a checker explores.
struct Counters([Padded<Counts>; STRIPES]);

/// The number of counters: a power of two.
const STRIPES: usize = 64;

#[derive(Default)]
struct Counts {
    lock: AtomicU64,
    unlock: AtomicU64,
}

fn counters<M: Machine>() -> &'static Counters {
    M::anchor().get_or_init(|| Counters(core::array::from_fn(|_| Padded::default())))
}

fn count<M: Machine>(which: impl FnOnce(&Counts) -> &AtomicU64) {
    let stripe = M::pin().cpu().index() % STRIPES;
    which(&counters::<M>().0[stripe]).fetch_add(1, Ordering::Relaxed);
}

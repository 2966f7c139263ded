//! The common part of the blocking mutexes: a word, and a turnstile for tasks that find it taken.
//!
//! # Protocol
//! The word holds the owner (0: free) and two bits.
//!
//! | bit | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `CONTESTED` | tasks are queued | a waiter, under the chain lock | the task that removes the last waiter, under the chain lock |
//! | `WAKING` | a task was woken and has not acquired the lock yet | its waker, under the chain lock | that task: it acquires the lock or goes back to the queue |
//!
//! ```text
//! lock:    cas(0, owner)
//!          else, for some rounds: if free: cas(word, owner + bits)
//!          lock the chain; if free: again; set CONTESTED; wait; from the top, with WAKING
//! unlock:  old = sub(owner); if old is CONTESTED and not WAKING:
//!          lock the chain; if a task waits and not WAKING: take the first, set WAKING;
//!          unlock the chain; unpark
//! ```
//! The lock is not handed over: the first task to come acquires it, be it the woken one or one that
//! never slept, so that a lock need not wait for another task to be scheduled. While one woken task
//! is on its way, releases wake no other: with all CPUs busy, a wake-up happens once per scheduling
//! of a waiter, not once per release. A task woken in vain goes back to the head of the queue.
//!
//! No wake-up is lost. `CONTESTED` is set under the chain lock while the word is taken, so the
//! holder's release sees it, and locks the chain after the waiter has been queued. Or the release
//! sees `WAKING`; then the woken task, awake, will acquire the lock and release it, or will clear
//! `WAKING` under the chain lock while another task holds the lock.

use crate::effort::{note_sleep, note_spins};
use crate::turnstile::Turnstiles;
use core::marker::PhantomData;
use core::ptr;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

/// Tasks wait in the turnstile.
pub(crate) const CONTESTED: usize = 1;
/// A woken task has not acquired the lock yet.
pub(crate) const WAKING: usize = 2;
/// All bits that do not name the owner.
const BITS: usize = CONTESTED | WAKING;

/// The variable that holds a mutex's state.
pub(crate) trait Word: Send + Sync {
    /// True if an owner is the address of a task's words.
    const NAMES_TASK: bool;
    fn new(value: usize) -> Self;
    fn load(&self) -> usize;
    /// Returns the word as it was, if it was not `current`.
    fn exchange(&self, current: usize, new: usize, success: Ordering) -> Result<(), usize>;
    fn subtract(&self, value: usize, order: Ordering) -> usize;
}

/// One byte: owners below 256.
pub(crate) struct Byte<M: Machine>(M::AtomicU8);

/// A pointer-sized word.
pub(crate) struct Pointer<M: Machine>(M::AtomicUsize);

macro_rules! word {
    ($word:ident, $atomic:ident, $value:ty, $names_task:literal) => {
        impl<M: Machine> Word for $word<M> {
            const NAMES_TASK: bool = $names_task;
            #[inline(always)]
            fn new(value: usize) -> Self {
                $word(M::$atomic::new(value as $value))
            }
            #[inline(always)]
            fn load(&self) -> usize {
                self.0.load(Ordering::Relaxed) as usize
            }
            #[inline(always)]
            #[track_caller]
            fn exchange(&self, current: usize, new: usize, success: Ordering) -> Result<(), usize> {
                let (current, new) = (current as $value, new as $value);
                match self
                    .0
                    .compare_exchange(current, new, success, Ordering::Relaxed)
                {
                    Ok(_) => Ok(()),
                    Err(word) => Err(word as usize),
                }
            }
            #[inline(always)]
            #[track_caller]
            fn subtract(&self, value: usize, order: Ordering) -> usize {
                self.0.fetch_sub(value as $value, order) as usize
            }
        }

        impl<M: Machine> ConstInit for $word<M>
        where
            M::$atomic: ConstInit,
        {
            const ZERO: Self = $word(ConstInit::ZERO);
        }
    };
}

word!(Byte, AtomicU8, u8, false);
word!(Pointer, AtomicUsize, usize, true);

/// A mutex without a name. A task spins for `SPINS` rounds on the same owner before it blocks.
pub(crate) struct Blocking<M: Machine, W: Word, const SPINS: u32, B = YieldSoon> {
    word: W,
    types: PhantomData<fn() -> (M, B)>,
}

impl<M: Machine, W: Word, const SPINS: u32, B: BackOff> Blocking<M, W, SPINS, B> {
    pub(crate) fn new() -> Self {
        Blocking {
            word: W::new(0),
            types: PhantomData,
        }
    }

    /// The owner, 0 for none.
    #[inline]
    pub(crate) fn owner(&self) -> usize {
        self.word.load() & !BITS
    }

    /// Acquires a lock that is free and has no waiters: one compare-and-swap. If that fails,
    /// returns the word as it was, so that [`Self::lock_slow`] need not fetch it again.
    #[inline(always)]
    pub(crate) fn lock_fast(&self, owner: usize) -> Result<(), usize> {
        // Acquire: pairs with the release of the owner that freed the lock.
        self.word.exchange(0, owner, Ordering::Acquire)
    }

    /// Frees the lock. Returns true if a task may have to be woken ([`Self::wake`]).
    ///
    /// The caller holds the lock as `owner`.
    #[inline(always)]
    #[must_use = "a blocked task may have to be woken"]
    pub(crate) fn unlock(&self, owner: usize) -> bool {
        // Release: pairs with the acquire of the next owner.
        let word = self.word.subtract(owner, Ordering::Release);
        // The assertion makes no access of its own: that would change a simulation's prediction.
        debug_assert_eq!(
            word & !BITS,
            owner,
            "released by a task that does not own it"
        );
        word & BITS == CONTESTED
    }

    /// Acquires the lock if it is free; otherwise returns the word as it was.
    #[inline]
    pub(crate) fn try_lock(&self, owner: usize) -> Result<(), usize> {
        let mut word = self.word.load();
        while word & !BITS == 0 {
            // Acquire: pairs with the release in `unlock`.
            match self.word.exchange(word, word | owner, Ordering::Acquire) {
                Ok(()) => return Ok(()),
                Err(now) => word = now,
            }
        }
        Err(word)
    }

    /// Acquires the lock, waiting as long as it takes; `word` is its value a moment ago.
    pub(crate) fn lock_slow(&self, owner: usize, mut word: usize) {
        debug_assert!(
            !W::NAMES_TASK || word & !BITS != owner,
            "acquired twice by one task"
        );
        // [`WAKING`] while this task is the woken one.
        let mut mine = 0;
        loop {
            if self.spin(owner, mine, word) {
                return;
            }
            let chain = Turnstiles::<M>::global().lock(self.key());
            if self.contest(mine) {
                if mine == 0 {
                    chain.wait();
                } else {
                    chain.wait_first();
                }
                note_sleep::<M>();
                mine = WAKING;
            }
            word = self.word.load();
        }
    }

    /// Tries to acquire the lock for some rounds. A new owner shows that the lock is being passed
    /// on, and restarts the count. Gives up on an owner that is known to be off its CPU.
    fn spin(&self, owner: usize, mine: usize, word: usize) -> bool {
        let mut rounds = 0u32;
        let taken = self.spin_counting(owner, mine, word, &mut rounds);
        note_spins::<M>(rounds);
        taken
    }

    fn spin_counting(&self, owner: usize, mine: usize, mut word: usize, rounds: &mut u32) -> bool {
        let mut seen = 0;
        let mut round = 0;
        loop {
            if word & !BITS == 0 {
                // Acquire: pairs with the release in `unlock`.
                let taken = owner | (word & !mine);
                match self.word.exchange(word, taken, Ordering::Acquire) {
                    Ok(()) => return true,
                    Err(now) => word = now,
                }
                continue;
            }
            if word & CONTESTED != 0 && mine == 0 {
                return false;
            }
            if word & !BITS != seen {
                seen = word & !BITS;
                round = 0;
            }
            let runs = if W::NAMES_TASK {
                M::is_running(seen)
            } else {
                None
            };
            match runs {
                Some(false) => return false,
                Some(true) if B::WHILE_RUNNING => {}
                _ if round == SPINS => return false,
                _ => {}
            }
            B::wait::<M>(round, *rounds);
            round = round.saturating_add(1);
            *rounds = rounds.saturating_add(1);
            word = self.word.load();
        }
    }

    /// Under the chain lock, marks that a task is about to wait, and clears WAKING if it is `mine`.
    /// Fails if the lock is free.
    fn contest(&self, mine: usize) -> bool {
        loop {
            let word = self.word.load();
            if word & !BITS == 0 {
                return false;
            }
            let contested = word & !mine | CONTESTED;
            // If nothing is to change, an old value does no harm: with WAKING in it another task is
            // awake, without it the release that followed locks the chain after this task. Relaxed:
            // the chain lock orders it.
            let exchange = |word| self.word.exchange(word, contested, Ordering::Relaxed);
            if word == contested || exchange(word).is_ok() {
                return true;
            }
        }
    }

    /// Wakes the first blocked task, if there is one and no woken task is on its way. Returns true
    /// if it did. Called after an [`Self::unlock`] that asked for it; the lock may have been freed
    /// meanwhile.
    pub(crate) fn wake(&self) -> bool {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        // The word may be touched only if a task waits: the waiter keeps it alive, at least until
        // the chain is unlocked.
        if !chain.has_waiters() || self.word.load() & WAKING != 0 {
            return false;
        }
        chain.signal();
        let last = !chain.has_waiters();
        // Only owners change meanwhile: the chain is locked, and no woken task is on its way that
        // could clear WAKING.
        loop {
            let word = self.word.load();
            let gone = if last { CONTESTED } else { 0 };
            // Relaxed: the exchange continues the release sequence of the owner's release, so it
            // need not repeat it.
            let woken = (word & !gone) | WAKING;
            if self.word.exchange(word, woken, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

impl<M: Machine, W: Word + ConstInit, const SPINS: u32, B> ConstInit for Blocking<M, W, SPINS, B> {
    const ZERO: Self = Blocking {
        word: W::ZERO,
        types: PhantomData,
    };
}

/// How a task passes the time between two looks at a taken lock.
pub trait BackOff: 'static {
    /// True if a task spins, without counting, as long as the owner is known to run.
    const WHILE_RUNNING: bool = false;

    /// Waits once: `round` counts the looks at the same owner, `total` all looks of this spin.
    fn wait<M: Machine>(round: u32, total: u32);
}

/// Three waits that double, then yields the CPU.
#[derive(Debug)]
pub struct YieldSoon;

impl BackOff for YieldSoon {
    #[inline]
    fn wait<M: Machine>(round: u32, _total: u32) {
        back_off::<M>(round);
    }
}

/// Three waits that double, then yields the CPU: once, twice, four times, and from then on eight
/// times before each look. A look takes the lock's cache line from the owner, which then has to
/// fetch it again.
#[derive(Debug)]
pub struct YieldMore;

impl BackOff for YieldMore {
    #[inline]
    fn wait<M: Machine>(round: u32, _total: u32) {
        const MOST: u32 = 3;
        let yields = 1 << round.saturating_sub(PAUSES).min(MOST);
        (0..yields).for_each(|_| back_off::<M>(round));
    }
}

/// FreeBSD's `lock_delay`, as its mutexes used it in 2018: pauses that double before each wait,
/// from 2 up to 32,678, whichever task owns the lock meanwhile.
#[derive(Debug)]
pub struct LockDelay;

impl BackOff for LockDelay {
    const WHILE_RUNNING: bool = true;

    #[inline]
    fn wait<M: Machine>(_round: u32, total: u32) {
        const MOST: u32 = 32_678;
        M::delay((2 << total.min(14)).min(MOST));
    }
}

/// Waits before a task yields.
const PAUSES: u32 = 3;

/// Waits that double, then yields the CPU.
#[inline]
pub(crate) fn back_off<M: Machine>(round: u32) {
    if round < PAUSES {
        M::delay(2 << round);
    } else {
        M::yield_now();
    }
}

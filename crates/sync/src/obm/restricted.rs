//! A one-byte mutex for which few tasks compete at a time.
//!
//! # Protocol
//! | bit | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `LOCKED` | a task has the lock | that task | its release |
//! | `PARKED` | tasks are parked | a waiter, under the chain lock | its waker, if it is the last one, under the chain lock |
//! | `WAKING` | a task was woken | its waker, under the chain lock | that task: it becomes the spinner, acquires the lock or queues |
//! | `SPINNER` | a task spins | that task | that task: it acquires the lock or queues |
//! | `TURN` | the spinner has waited for long, and no other task acquires the lock before it | the spinner | with `SPINNER` |
//!
//! ```text
//! lock:    cas(0, LOCKED)
//!          else, if there is no SPINNER: become it; spin, and claim the lock when it is free
//!          else look a few times if the lock is free, and claim it
//!          lock the chain; if still LOCKED, or it is another's TURN: set PARKED, wait;
//!              from the top
//! unlock:  old = sub(LOCKED); if old is PARKED, and neither SPINNER nor WAKING:
//!          lock the chain; if a task waits: take the first, set WAKING; unlock the chain; unpark
//! ```
//! So a few tasks, which are awake, pass the lock back and forth as fast as they would alone,
//! however many compete. The others sleep and take turns at being these few (Dice, Malthusian
//! locks, 2017): every [`PASSES`]th time that a task releases the lock while another spins, it also
//! wakes a sleeper.
//!
//! No wake-up is lost. `PARKED` is set under the chain lock while the lock is taken, so that the
//! holder's release sees it, or while it is the spinner's turn. A release leaves waiters asleep
//! only if `SPINNER` or `WAKING` stands for a task that is awake: that task acquires the lock and
//! so has a release to do, or it clears the bit under the chain lock while another task holds the
//! lock, or has its turn.

use super::{LOCKED, count};
use crate::blocking::{Byte, Word, back_off};
use crate::ecosystem::impl_lock_apis;
use crate::effort::{note_sleep, note_spins};
use crate::locals;
use crate::raw::RawLock;
use crate::turnstile::Turnstiles;
use core::ptr;
use machine::{ConstInit, Machine, Ordering};

const PARKED: usize = 1;
const WAKING: usize = 2;
const SPINNER: usize = 8;
const TURN: usize = 16;
/// The bits that a task sets for itself.
const OWN: usize = SPINNER | TURN;

/// Rounds of spinning before a task blocks.
const SPINS: u32 = 10;

/// Pauses between two reads of a spinner: a read takes the cache line from the holder.
const PATIENCE: u32 = 25;

/// The number of a task's releases that leave sleepers asleep before one wakes a sleeper.
const PASSES: usize = 1000;

/// A mutex in one byte for short critical sections for which many tasks compete again and again.
///
/// One task at a time spins, for up to twice `SPINS` rounds. Tasks that come meanwhile soon block,
/// and take turns after about a thousand acquisitions. Uncontended it is as fast as [`super::Obm`].
/// A running task may overtake the spinner for half of its rounds.
pub struct RestrictedObm<M: Machine, const SPINS: u32 = { self::SPINS }> {
    word: Byte<M>,
}

// SAFETY: the protocol of the module docs: a compare-and-swap of a value without LOCKED sets it,
// with acquire, and the owner clears it with release.
unsafe impl<M: Machine, const SPINS: u32> RawLock<M> for RestrictedObm<M, SPINS> {
    type Held = ();
    const NAME: &'static str = "restricted-obm";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        RestrictedObm { word: Byte::new(0) }
    }

    #[inline]
    fn lock(&self) {
        // Acquire: pairs with the release in `unlock`.
        let free = self.word.exchange(0, LOCKED, Ordering::Acquire);
        if free.is_err() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.claim(0).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // Release: pairs with the acquire of the next owner.
        let word = self.word.subtract(LOCKED, Ordering::Release);
        debug_assert!(
            word & LOCKED != 0,
            "released by a task that does not own it"
        );
        if word & PARKED != 0 {
            self.release_parked(word);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load() & LOCKED != 0
    }
}

impl<M: Machine, const SPINS: u32> RestrictedObm<M, SPINS> {
    #[cold]
    fn lock_slow(&self) {
        if self.claim(0) {
            return;
        }
        count::<M>(|counts| &counts.lock);
        // The bits that stand for this task.
        let mut own = 0;
        let mut woken = false;
        loop {
            if own & SPINNER == 0 {
                own = self.become_spinner(own, woken);
            }
            let claimed = match own & SPINNER {
                0 => self.claim(own),
                _ => self.insist(),
            };
            if claimed {
                return;
            }
            let chain = Turnstiles::<M>::global().lock(self.key());
            if self.note_parked(own) {
                if woken {
                    chain.wait_first()
                } else {
                    chain.wait()
                }
                note_sleep::<M>();
                (own, woken) = (WAKING, true);
            }
        }
    }

    /// Makes the caller, for which the bits `own` stand, the spinner if there is none. Gives up
    /// after some rounds, more of them if it was `woken`, or when the lock is free. Returns the
    /// bits that now stand for the caller.
    fn become_spinner(&self, own: usize, woken: bool) -> usize {
        let rounds = if woken { SPINS } else { SPINS.min(2) };
        let mut round = 0;
        loop {
            let word = self.word.load();
            if word & SPINNER == 0 {
                // Relaxed: the bits order nothing; the claim and the chain lock do.
                let spinner = word & !own | SPINNER;
                if self.word.exchange(word, spinner, Ordering::Relaxed).is_ok() {
                    return OWN;
                }
                continue;
            }
            if word & (LOCKED | TURN) == 0 || round == rounds {
                note_spins::<M>(round);
                return own;
            }
            M::delay(PATIENCE);
            round += 1;
        }
    }

    /// Tries for some rounds to claim the lock, as the spinner. In the later half it lets no other
    /// task claim the lock. Returns true if it claimed the lock.
    fn insist(&self) -> bool {
        let mut round = 0;
        loop {
            let claimed = self.claim(OWN);
            if claimed || round >= 2 * SPINS {
                note_spins::<M>(round);
                return claimed;
            }
            if round == SPINS {
                self.set_turn();
            }
            match round {
                0..3 => back_off::<M>(round),
                _ if round < SPINS => M::delay(PATIENCE),
                _ => M::yield_now(),
            }
            round += 1;
        }
    }

    /// Acquires the lock if it is free, and clears the bits that stand for the caller. Returns true
    /// if it did.
    #[inline]
    fn claim(&self, own: usize) -> bool {
        let stops = LOCKED | TURN & !own;
        let mut word = self.word.load();
        while word & stops == 0 {
            // Acquire: pairs with the release in `unlock`.
            let claimed = (word | LOCKED) & !own;
            match self.word.exchange(word, claimed, Ordering::Acquire) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Stops others from claiming the lock. Called by the spinner.
    fn set_turn(&self) {
        let mut word = self.word.load();
        // Relaxed: the bits order nothing.
        while let Err(now) = self.word.exchange(word, word | TURN, Ordering::Relaxed) {
            word = now;
        }
    }

    /// Under the chain lock, sets PARKED and clears the bits that stand for the caller, if it still
    /// has to wait. Returns true if it has to wait.
    fn note_parked(&self, own: usize) -> bool {
        let stops = LOCKED | TURN & !own;
        let mut word = self.word.load();
        while word & stops != 0 {
            // Relaxed: the chain lock orders it. Exchanged even if nothing changes, so that the
            // value is the newest.
            let parked = word & !own | PARKED;
            match self.word.exchange(word, parked, Ordering::Relaxed) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// After a release that found `word`, with tasks parked, wakes one if none is awake, or if it
    /// is a sleeper's turn.
    #[cold]
    fn release_parked(&self, word: usize) {
        let awake = word & (SPINNER | WAKING);
        if awake == 0 || awake == SPINNER && is_time::<M>() {
            self.wake(awake);
        }
    }

    /// Wakes the first parked task, if there is one and no bit but those of `awake` stands for a
    /// task that is awake.
    fn wake(&self, awake: usize) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        // The word may be touched only if a task waits: the waiter keeps it alive, at least until
        // the chain is unlocked.
        if !chain.has_waiters() || self.word.load() & (SPINNER | WAKING) & !awake != 0 {
            return;
        }
        count::<M>(|counts| &counts.unlock);
        chain.signal();
        let gone = if chain.has_waiters() { 0 } else { PARKED };
        let mut word = self.word.load();
        // Relaxed: the exchange continues the release sequence of the owner's release, so it need
        // not repeat it.
        while let Err(now) = self
            .word
            .exchange(word, word & !gone | WAKING, Ordering::Relaxed)
        {
            word = now;
        }
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }
}

/// Returns true if the calling task has left sleepers asleep [`PASSES`] times since it last woke
/// one.
fn is_time<M: Machine>() -> bool {
    M::with_locals(|locals| {
        let passes = &locals.words[locals::PASSES];
        passes.set((passes.get() + 1) % PASSES);
        passes.get() == 0
    })
}

impl_lock_apis!(
    [M: Machine<AtomicU8: ConstInit>, const SPINS: u32] RestrictedObm<M, SPINS> = RestrictedObm {
        word: Byte::ZERO,
    }
);

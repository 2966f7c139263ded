//! A reader-writer lock that spins, then parks: 4 bytes.
//!
//! # Protocol
//! | bits | meaning |
//! |---|---|
//! | `WRITER` | a writer has the lock, or has claimed it and waits for the readers to leave |
//! | `PARKED_READERS` | tasks stand in the turnstile's queue 0 |
//! | `PARKED_WRITERS` | tasks stand in queue 1 |
//! | `DRAIN` | the writer that claimed the lock stands in queue 2 |
//! | `SPINNER` | restricted: a writer spins, and claims the lock or queues |
//! | `TURN` | restricted: the spinner has waited for long, and no writer claims the lock before it |
//! | `PASSED` | restricted: how many releases have left parked writers asleep since one was woken |
//! | the rest | how many readers there are |
//!
//! ```text
//! read:          if not WRITER: cas(word, word + READER)
//!                else spin; lock the chain; if still WRITER: set PARKED_READERS, wait: the lock is ours
//! read unlock:   sub(READER); if that left DRAIN and no reader: signal queue 2
//! write:         if not WRITER: cas(word, word + WRITER), then wait for the readers to leave:
//!                    spin; lock the chain; if there still are some: set DRAIN, wait
//!                else spin; lock the chain; if still WRITER: set PARKED_WRITERS, wait, from the top
//! write unlock:  cas(WRITER, 0)
//!                else lock the chain; take all readers and the first writer;
//!                     word = those readers + PARKED_WRITERS if some remain; unlock it; unpark
//! ```
//! A claim stops new readers, so a writer waits only for those inside. A writer's release hands the
//! lock to all readers that wait then, so a queued reader waits for one writer (phase-fair:
//! Brandenburg and Anderson, 2010), and wakes one writer, which claims the lock next or queues
//! again at the head. So whenever a task stands in queue 0 or 1, WRITER is set or a writer is awake
//! to set it.
//!
//! PARKED and DRAIN are set under the chain lock, by a compare-and-swap that fails if the awaited
//! change has happened. No release touches the word after the step that frees the lock.
//!
//! # Restricted
//! With `RESTRICTED`, one writer spins, and those that come meanwhile park. A release leaves parked writers asleep while there is
//! a spinner, but each thousandth time. So a few writers pass the lock to and fro, however many want it, as fast as they would
//! alone, and the others take turns at being these few (Dice, Malthusian locks, 2017). A running writer may overtake the
//! spinner until that sets TURN.
//!
//! SPINNER stands for a writer that is awake and looks after those that sleep: only that writer clears it, as it claims
//! the lock or, while WRITER is set, as it queues.

use super::RawRw;
use crate::blocking::back_off;
use crate::turnstile::Turnstiles;
use crate::watch::{note_sleep, note_spins};
use core::ptr;
use lock_api::GuardNoSend;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

const WRITER: u32 = 1;
const PARKED_READERS: u32 = 2;
const PARKED_WRITERS: u32 = 4;
const PARKED: u32 = PARKED_READERS | PARKED_WRITERS;
const DRAIN: u32 = 8;
const SPINNER: u32 = 16;
const TURN: u32 = 32;
/// The spinner's bits.
const OWN: u32 = SPINNER | TURN;
/// One release that has woken no writer, and the most of them.
const PASS: u32 = 64;
const PASSED: u32 = 1023 * PASS;
/// One reader, and all of them.
const READER: u32 = PASSED + PASS;
const INSIDE: u32 = !(READER - 1);
/// More readers than this mean that acquisitions leak.
const READERS_MAX: u32 = u32::MAX / READER / 2;

/// Queues of the turnstile.
const READERS: usize = 0;
const WRITERS: usize = 1;
const DRAINING: usize = 2;

/// Rounds of spinning before a task blocks.
const SPINS: u32 = 10;

/// Pauses between two looks of a writer that lets others go first: a look takes the line from the holder.
const PATIENCE: u32 = 200;

/// A reader-writer lock of 4 bytes: shared readers, no starvation of writers, phase-fair to readers
/// that wait.
///
/// A task spins for `SPINS` rounds before it blocks. If `RESTRICTED`, writers that come while one spins block soon, and
/// take turns by the thousand: a lock for short sections that many tasks want again and again.
pub struct SpinParkRw<
    M: Machine,
    const SPINS: u32 = { self::SPINS },
    const RESTRICTED: bool = false,
> {
    word: M::AtomicU32,
}

/// A [`SpinParkRw`] that is restricted.
pub type RestrictedRw<M> = SpinParkRw<M, SPINS, true>;

// SAFETY: the protocol of the module docs: a compare-and-swap of a word without WRITER sets it, and
// the writer goes on when no reader is left; readers are added only to words without WRITER, or by
// the writer that releases the lock.
unsafe impl<M: Machine, const SPINS: u32, const RESTRICTED: bool> RawRw<M>
    for SpinParkRw<M, SPINS, RESTRICTED>
{
    const NAME: &'static str = match RESTRICTED {
        true => "restricted-rw",
        false => "spin-park-rw",
    };
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        SpinParkRw {
            word: M::AtomicU32::new(0),
        }
    }

    #[inline]
    fn read(&self) {
        if !self.try_read() {
            self.read_slow();
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & WRITER == 0 {
            if word / READER >= READERS_MAX {
                too_many_readers();
            }
            // Acquire: pairs with the release of the last writer.
            match self.word.compare_exchange_weak(
                word,
                word + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // Release: pairs with the acquire of the writer that finds no reader.
        let left = self.word.fetch_sub(READER, Ordering::Release) - READER;
        if left & DRAIN != 0 && left & INSIDE == 0 {
            self.drained();
        }
    }

    #[inline]
    fn write(&self) {
        let free = match RESTRICTED {
            // Mostly there are other bits, which stay.
            true => self.try_write(),
            // Acquire: pairs with the releases of the readers and the writer before.
            false => self
                .word
                .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed)
                .is_ok(),
        };
        if !free {
            self.write_slow();
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & (WRITER | DRAIN | TURN | INSIDE) == 0 {
            // Acquire: pairs with the releases of the readers and the writer before.
            match self.word.compare_exchange(
                word,
                word | WRITER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        if RESTRICTED && self.leave_to_spinner() {
            return;
        }
        // Release: pairs with the acquire of the next readers or writer.
        let alone = self
            .word
            .compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if alone.is_err() {
            self.write_unlock_slow();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (WRITER | DRAIN | INSIDE) != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WRITER != 0
    }
}

impl<M: Machine, const SPINS: u32, const RESTRICTED: bool> SpinParkRw<M, SPINS, RESTRICTED> {
    /// How many readers held the lock a moment ago.
    #[inline]
    pub fn readers(&self) -> u32 {
        self.word.load(Ordering::Relaxed) / READER
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    #[cold]
    fn read_slow(&self) {
        loop {
            if self.spin_while(WRITER) && self.try_read() {
                return;
            }
            let mut chain = Turnstiles::<M>::global().lock(self.key());
            if self.note(WRITER, PARKED_READERS, 0) {
                chain.select(READERS);
                // The writer that wakes this task has counted it among the readers.
                chain.wait();
                note_sleep::<M>();
                return;
            }
        }
    }

    #[cold]
    fn write_slow(&self) {
        let mut woken = false;
        // Whether this task is the spinner.
        let mut spins = false;
        loop {
            let claimed = if RESTRICTED {
                spins = spins || self.become_spinner(woken);
                if spins { self.insist() } else { self.claim(0) }
            } else {
                self.spin_while(WRITER) && self.claim(0)
            };
            if claimed {
                return self.wait_for_readers();
            }
            let mut chain = Turnstiles::<M>::global().lock(self.key());
            // While TURN is set the spinner is next, and then has the release to do.
            let (while_set, own) = if spins {
                (WRITER, OWN)
            } else {
                (WRITER | TURN, 0)
            };
            if self.note(while_set, PARKED_WRITERS, own) {
                spins = false;
                chain.select(WRITERS);
                if woken {
                    chain.wait_first();
                } else {
                    chain.wait();
                }
                note_sleep::<M>();
                woken = true;
            }
        }
    }

    /// Makes the caller the spinner if there is none. Gives up after some rounds, more of them if it was `woken`, or
    /// when the lock is free; returns whether the caller is the spinner.
    fn become_spinner(&self, woken: bool) -> bool {
        let rounds = if woken { SPINS } else { SPINS.min(2) };
        let mut round = 0;
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & SPINNER == 0 {
                // Relaxed: the bit orders nothing; the claim and the chain lock do.
                return self.word.fetch_or(SPINNER, Ordering::Relaxed) & SPINNER == 0;
            }
            if word & (WRITER | TURN) == 0 || round == rounds {
                note_spins::<M>(round);
                return false;
            }
            M::delay(PATIENCE);
            round += 1;
        }
    }

    /// Tries for some rounds to claim the lock, as the spinner, and in the later half lets no other
    /// writer claim it; returns whether it has.
    fn insist(&self) -> bool {
        let mut round = 0;
        loop {
            let claimed = self.claim(OWN);
            if claimed || round >= 2 * SPINS {
                note_spins::<M>(round);
                return claimed;
            }
            if round == SPINS {
                // Relaxed: as SPINNER.
                self.word.fetch_or(TURN, Ordering::Relaxed);
            }
            M::delay(if round < SPINS { PATIENCE } else { 4 });
            round += 1;
        }
    }

    /// Sets WRITER if it is not set, and clears the bits of `own`, those of a caller that is the spinner; returns
    /// whether it did.
    fn claim(&self, own: u32) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let stops = if own == 0 { WRITER | TURN } else { WRITER };
        let claimed = (word | WRITER) & !own;
        // Acquire: pairs with the release of the writer before; `wait_for_readers` acquires from
        // readers still inside.
        word & stops == 0
            && self
                .word
                .compare_exchange(word, claimed, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// The caller has set WRITER, so readers only leave.
    fn wait_for_readers(&self) {
        if !self.spin_while(INSIDE) {
            let mut chain = Turnstiles::<M>::global().lock(self.key());
            if self.note(INSIDE, DRAIN, 0) {
                chain.select(DRAINING);
                chain.wait();
                note_sleep::<M>();
                self.word.fetch_and(!DRAIN, Ordering::Relaxed);
            }
        }
        // Acquire, after the relaxed loads that saw no reader: pairs with the releases
        // in `read_unlock`.
        M::fence(Ordering::Acquire);
    }

    /// The last reader has left, and a writer stands in queue 2 or is about to: it has set DRAIN
    /// under the chain lock. The lock belongs to that writer.
    #[cold]
    fn drained(&self) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        chain.select(DRAINING).signal();
    }

    /// Releases the lock to the writer that spins, if there is one; returns whether it did. Parked writers
    /// sleep on, but not for ever; readers do not.
    #[inline]
    fn leave_to_spinner(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & SPINNER != 0 && word & PARKED_READERS == 0 && word & PASSED != PASSED {
            let pass = if word & PARKED == 0 { 0 } else { PASS };
            // Release: pairs with the acquire in `claim` or `try_read`.
            match self.word.compare_exchange(
                word,
                (word & !WRITER) + pass,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[cold]
    fn write_unlock_slow(&self) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        // The chain is locked: no other task changes the word, but the spinner its bits.
        let readers = chain.select(READERS).broadcast() as u32 * READER;
        chain.select(WRITERS).signal();
        let parked = if chain.has_waiters() {
            PARKED_WRITERS
        } else {
            0
        };
        let mut word = self.word.load(Ordering::Relaxed);
        // Release: pairs with the acquire of the next readers or writer.
        while let Err(other) = self.word.compare_exchange(
            word,
            readers | parked | word & OWN,
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            word = other;
        }
    }

    /// Spins for some rounds while one of `bits` is set; returns whether none is.
    fn spin_while(&self, bits: u32) -> bool {
        let mut round = 0;
        loop {
            let gone = self.word.load(Ordering::Relaxed) & bits == 0;
            if gone || round == SPINS {
                note_spins::<M>(round);
                return gone;
            }
            back_off::<M>(round);
            round += 1;
        }
    }

    /// Under the chain lock: sets `bit` and clears `own` if one of `bits` still is set; returns whether it was.
    fn note(&self, bits: u32, bit: u32, own: u32) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & bits != 0 {
            // Relaxed: the chain lock orders it. Exchanged even if nothing changes, so that the
            // value is the newest.
            let noted = (word | bit) & !own;
            match self
                .word
                .compare_exchange(word, noted, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
        false
    }
}

#[cold]
#[inline(never)]
fn too_many_readers() -> ! {
    panic!("a reader-writer lock has too many readers: read acquisitions are leaking");
}

// SAFETY: it forwards to `RawRw`, which has the same contract.
unsafe impl<M: Machine, const SPINS: u32, const RESTRICTED: bool> lock_api::RawRwLock
    for SpinParkRw<M, SPINS, RESTRICTED>
where
    M::AtomicU32: ConstInit,
{
    const INIT: Self = SpinParkRw {
        word: ConstInit::ZERO,
    };
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    fn lock_shared(&self) -> GuardNoSend {
        self.read();
        GuardNoSend::new()
    }
    #[inline]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.try_read().then(GuardNoSend::new)
    }
    #[inline]
    unsafe fn unlock_shared(&self, _: GuardNoSend) {
        // SAFETY: the caller has a read acquisition.
        unsafe { self.read_unlock() };
    }
    #[inline]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.write();
        GuardNoSend::new()
    }
    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_write().then(GuardNoSend::new)
    }
    #[inline]
    unsafe fn unlock_exclusive(&self, _: GuardNoSend) {
        // SAFETY: the caller has the write acquisition.
        unsafe { self.write_unlock() };
    }
    #[inline]
    fn is_locked(&self) -> bool {
        RawRw::is_locked(self)
    }
    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        RawRw::is_write_locked(self)
    }
}

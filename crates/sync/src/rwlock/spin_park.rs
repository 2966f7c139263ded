//! A reader-writer lock that spins, then parks: 4 bytes.
//!
//! # Protocol
//! | bits | meaning |
//! |---|---|
//! | `WRITER` | a writer has the lock, or has claimed it and waits for the readers to leave |
//! | `PARKED` | tasks wait in the turnstile's queue 0 (readers) or 1 (writers) |
//! | `DRAIN` | the writer that claimed the lock waits in queue 2 |
//! | the rest | the number of readers |
//!
//! ```text
//! read:          if not WRITER: cas(word, word + READER)
//!                else spin; lock the chain; if still WRITER: set PARKED, wait: the lock is granted
//! read unlock:   sub(READER); if that left DRAIN and no reader: signal queue 2
//! write:         if not WRITER: cas(word, word + WRITER), then wait for the readers to leave:
//!                    spin; lock the chain; if there still are some: set DRAIN, wait
//!                else spin; lock the chain; if still WRITER: set PARKED, wait, from the top
//! write unlock:  cas(WRITER, 0)
//!                else lock the chain; take all readers and the first writer;
//!                     word = those readers + PARKED if writers remain; unlock it; unpark
//! ```
//! A claim stops new readers, so a writer waits only for those inside. A writer's release hands the
//! lock to all readers that wait then, so a queued reader waits for one writer (phase-fair:
//! Brandenburg and Anderson, 2010), and wakes one writer, which claims the lock next or queues
//! again at the head. So whenever a task waits in queue 0 or 1, WRITER is set or a writer is awake
//! to set it.
//!
//! PARKED and DRAIN are set under the chain lock, by a compare-and-swap that fails if the awaited
//! change has happened. No release touches the word after the step that frees the lock.

use super::RawRw;
use crate::blocking::back_off;
use crate::effort::{note_sleep, note_spins};
use crate::turnstile::Turnstiles;
use core::ptr;
use lock_api::GuardNoSend;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

const WRITER: u32 = 1;
const PARKED: u32 = 2;
const DRAIN: u32 = 4;
/// One reader.
const READER: u32 = 8;
/// More readers than this mean that acquisitions leak.
const READERS_MAX: u32 = u32::MAX / READER / 2;

/// Queues of the turnstile.
const READERS: usize = 0;
const WRITERS: usize = 1;
const DRAINING: usize = 2;

/// Rounds of spinning before a task blocks.
const SPINS: u32 = 10;

/// A reader-writer lock of 4 bytes: shared readers, no starvation of writers, phase-fair to readers
/// that wait.
///
/// A task spins for `SPINS` rounds before it blocks.
pub struct SpinParkRw<M: Machine, const SPINS: u32 = { self::SPINS }> {
    word: M::AtomicU32,
}

// SAFETY: the protocol of the module docs: a compare-and-swap of a word without WRITER sets it, and
// the writer goes on when no reader is left; readers are added only to words without WRITER, or by
// the writer that releases the lock.
unsafe impl<M: Machine, const SPINS: u32> RawRw<M> for SpinParkRw<M, SPINS> {
    const NAME: &'static str = "spin-park-rw";
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
        if left & DRAIN != 0 && left / READER == 0 {
            self.drained();
        }
    }

    #[inline]
    fn write(&self) {
        // Acquire: pairs with the releases of the readers and the writer before.
        let free = self
            .word
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed);
        if free.is_err() {
            self.write_slow();
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & !PARKED == 0 {
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
        // Release: pairs with the acquire of the next readers or writer.
        let alone = self
            .word
            .compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if alone.is_err() {
            self.write_unlock_slow(0);
        }
    }

    #[inline]
    unsafe fn try_downgrade(&self) -> bool {
        // Release: pairs with the acquire of the next readers or writer.
        let alone =
            self.word
                .compare_exchange(WRITER, READER, Ordering::Release, Ordering::Relaxed);
        if alone.is_err() {
            self.write_unlock_slow(1);
        }
        true
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !PARKED != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WRITER != 0
    }
}

impl<M: Machine, const SPINS: u32> SpinParkRw<M, SPINS> {
    /// The number of readers that held the lock a moment ago.
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
            if self.note(WRITER, PARKED) {
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
        loop {
            if self.spin_while(WRITER) && self.claim() {
                return self.wait_for_readers();
            }
            let mut chain = Turnstiles::<M>::global().lock(self.key());
            if self.note(WRITER, PARKED) {
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

    /// Sets WRITER if it is not set. Returns true if it did.
    fn claim(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // Acquire: pairs with the release of the writer before; `wait_for_readers` acquires from
        // readers still inside.
        word & WRITER == 0
            && self
                .word
                .compare_exchange(word, word | WRITER, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Waits until all readers have left. The caller has set WRITER, so no new ones come.
    fn wait_for_readers(&self) {
        if !self.spin_while(!(WRITER | PARKED)) {
            let mut chain = Turnstiles::<M>::global().lock(self.key());
            if self.note(!(WRITER | PARKED | DRAIN), DRAIN) {
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

    /// Wakes the writer in queue 2, after the last reader has left. The writer is in the queue or
    /// about to be, since it has set DRAIN under the chain lock; the lock now belongs to it.
    #[cold]
    fn drained(&self) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        chain.select(DRAINING).signal();
    }

    /// Hands the lock to the readers that wait and to the next writer. `stays` is 1 if the caller
    /// goes on as a reader, otherwise 0.
    #[cold]
    fn write_unlock_slow(&self, stays: u32) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        // PARKED is set, and the chain is locked: no other task changes the word.
        let readers = (chain.select(READERS).broadcast() as u32 + stays) * READER;
        chain.select(WRITERS).signal();
        let parked = if chain.has_waiters() { PARKED } else { 0 };
        // Release: pairs with the acquire of the next readers or writer.
        self.word.store(readers | parked, Ordering::Release);
    }

    /// Spins for some rounds while one of `bits` is set. Returns true if none is set.
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

    /// Under the chain lock, sets `bit` if one of `bits` is still set. Returns true if one was.
    fn note(&self, bits: u32, bit: u32) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & bits != 0 {
            // Relaxed: the chain lock orders it. Exchanged even if nothing changes, so that the
            // value is the newest.
            match self
                .word
                .compare_exchange(word, word | bit, Ordering::Relaxed, Ordering::Relaxed)
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
unsafe impl<M: Machine, const SPINS: u32> lock_api::RawRwLock for SpinParkRw<M, SPINS>
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
        // SAFETY: the caller holds a read acquisition.
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
        // SAFETY: the caller holds the write acquisition.
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

// SAFETY: it forwards to `RawRw`, which has the same contract; this lock can always do it.
unsafe impl<M: Machine, const SPINS: u32> lock_api::RawRwLockDowngrade for SpinParkRw<M, SPINS>
where
    M::AtomicU32: ConstInit,
{
    #[inline]
    unsafe fn downgrade(&self, _: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the write acquisition.
        let _always = unsafe { self.try_downgrade() };
        GuardNoSend::new()
    }
}

#[cfg(feature = "lock_api_0_4")]
// SAFETY: as that of the other version.
unsafe impl<M: Machine, const SPINS: u32> lock_api_0_4::RawRwLock for SpinParkRw<M, SPINS>
where
    M::AtomicU32: ConstInit,
{
    const INIT: Self = SpinParkRw {
        word: ConstInit::ZERO,
    };
    type GuardMarker = lock_api_0_4::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        self.read();
    }
    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.try_read()
    }
    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller holds a read acquisition.
        unsafe { self.read_unlock() };
    }
    #[inline]
    fn lock_exclusive(&self) {
        self.write();
    }
    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.try_write()
    }
    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller holds the write acquisition.
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

#[cfg(feature = "lock_api_0_4")]
// SAFETY: as that of the other version.
unsafe impl<M: Machine, const SPINS: u32> lock_api_0_4::RawRwLockDowngrade for SpinParkRw<M, SPINS>
where
    M::AtomicU32: ConstInit,
{
    #[inline]
    unsafe fn downgrade(&self) {
        // SAFETY: the caller holds the write acquisition.
        let _always = unsafe { self.try_downgrade() };
    }
}

//! FreeBSD's `sx` and `rwlock`: locks of one word, whose tasks spin while that may help, and whose
//! release wakes all waiters of one of two queues.
//!
//! They follow sys/kern/kern_sx.c of FreeBSD 14 (`_sx_slock_hard`, `_sx_xlock_hard`,
//! `_sx_sunlock_hard`, `_sx_xunlock_hard`); `kern_rwlock.c` has the same steps, on turnstiles in
//! place of sleep queues.
//!
//! | bits | meaning |
//! |---|---|
//! | `READ` | no writer holds the lock; the upper bits count readers, else they name the writer |
//! | `READ_WAITERS`, `WRITE_WAITERS` | tasks wait in the queue of readers, or of writers |
//! | `SPINNER` | with `READ`: a writer spins behind the readers, and no new reader is admitted |
//!
//! ```text
//! read:          if READ and neither WRITE_WAITERS nor SPINNER: cas(word, word + READER)
//!                a writer has it: spin while it runs;
//!                readers have it: spin up to 10 times for 10,000 pauses
//!                else lock the chain; look again; set READ_WAITERS; sleep; from the top
//! write:         if READ or READ + SPINNER and nothing else: cas(word, me)
//!                a writer has it: spin while it runs; readers have it: set SPINNER; spin as above
//!                else lock the chain; look again; if it is free: cas(word, me + waiters)
//!                    clear SPINNER if this task set it; set WRITE_WAITERS; sleep; from the top
//! read unlock:   not the last, or no task waits: cas(word, word - READER)
//! write unlock:  no task waits: cas(me, READ)
//! last with waiters: lock the chain;
//!                if writers wait: wake all of them, and leave READ_WAITERS; else wake all readers
//! ```
//! Tasks that are woken compete with all others, and writers that spin overtake them. A bit of
//! waiters is set under the chain's lock by an exchange of a word in which the lock is held, and
//! the release that frees a lock with waiters locks the chain: so it finds the sleeper. A queue's
//! bit is cleared when all its tasks are woken.
//!
//! The differences: a task does not take a read lock again behind a writer that waits
//! (`td_sx_slocks`); priorities are not lent; behind readers one read of the word replaces 20,
//! since a read that finds no change takes as long as a pause but costs a simulator more; if the
//! machine does not know which tasks run, a writer that stays for `LOOKS` reads counts as not
//! running.

use super::RawRw;
use crate::blocking::{BackOff, LockDelay};
use crate::effort::{note_sleep, note_spins};
use crate::turnstile::Turnstiles;
use core::ptr;
use machine::{Atomic, Machine, Ordering};

const READ: usize = 1;
const READ_WAITERS: usize = 2;
const WRITE_WAITERS: usize = 4;
const WAITERS: usize = READ_WAITERS | WRITE_WAITERS;
const SPINNER: usize = 8;
/// What one reader adds to the word.
const READER: usize = 16;

/// Queues of the turnstile.
const READERS: usize = 0;
const WRITERS: usize = 1;

/// Pauses that replace further reads behind readers.
const PAUSES: usize = 20;

/// The reader-writer lock of FreeBSD: one word. The task that acquires it for writing must release
/// it.
///
/// A task spins behind readers `TRIES` times for `LOOPS` pauses.
pub struct FreebsdRw<
    M: Machine,
    const LOOKS: u32 = 13,
    const TRIES: u32 = 10,
    const LOOPS: usize = 10_000,
> {
    word: M::AtomicUsize,
}

/// The kind of holder that the lock had when a task gave up spinning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Readers,
    Writer,
}

fn is_readable(word: usize) -> bool {
    word & (READ | WRITE_WAITERS | SPINNER) == READ
}

/// The number of readers that a word with `READ` counts.
fn readers(word: usize) -> usize {
    word / READER
}

/// The calling task: the address of its local words, whose low bits are free.
fn me<M: Machine>() -> usize {
    M::with_locals(|locals| ptr::from_ref(locals) as usize)
}

impl<M: Machine, const LOOKS: u32, const TRIES: u32, const LOOPS: usize>
    FreebsdRw<M, LOOKS, TRIES, LOOPS>
{
    fn load(&self) -> usize {
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    #[track_caller]
    fn exchange(&self, word: usize, new: usize, success: Ordering) -> Result<(), usize> {
        self.word
            .compare_exchange(word, new, success, Ordering::Relaxed)
            .map(drop)
    }

    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    #[cold]
    fn read_slow(&self) {
        let (mut tries, mut looks) = (0, 0);
        loop {
            if self.try_read() {
                return note_spins::<M>(looks);
            }
            let word = self.load();
            let helps = if word & READ == 0 {
                self.spin_behind_writer(word, &mut looks)
            } else if is_readable(word) {
                true
            } else if readers(word) == 0 {
                // A writer that spins can take the lock now.
                M::delay(2);
                M::relax(looks);
                looks = looks.saturating_add(1);
                true
            } else {
                tries += 1;
                tries <= TRIES && self.spin_behind_readers(word, is_readable, &mut looks)
            };
            if !helps {
                self.sleep_to_read();
            }
        }
    }

    /// Sleeps in the queue of readers, if the lock still admits none.
    fn sleep_to_read(&self) {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        let mut word = self.load();
        loop {
            if is_readable(word) || self.is_worth_spinning(word) {
                return;
            }
            // Relaxed: the chain's lock orders it. Exchanged even if nothing changes, so that the
            // value is the newest.
            match self.exchange(word, word | READ_WAITERS, Ordering::Relaxed) {
                Ok(()) => break,
                Err(other) => word = other,
            }
        }
        chain.select(READERS);
        chain.wait();
        note_sleep::<M>();
    }

    #[cold]
    fn write_slow(&self) {
        let (mut tries, mut looks) = (0, 0);
        // Held while this task has set SPINNER, so that it is not preempted.
        let mut claim: Option<M::Pin> = None;
        loop {
            let word = self.load();
            if word & !SPINNER == READ {
                // Acquire: pairs with the releases before, of a writer that waited.
                if self.exchange(word, me::<M>(), Ordering::Acquire).is_ok() {
                    return note_spins::<M>(looks);
                }
                continue;
            }
            let mut behind = Behind::Readers;
            if word & READ == 0 {
                claim = None;
                behind = Behind::Writer;
                if self.spin_behind_writer(word, &mut looks) {
                    continue;
                }
            } else if readers(word) > 0 && tries < TRIES {
                if word & SPINNER == 0 {
                    claim = Some(M::pin());
                    let claimed = self.exchange(word, word | SPINNER, Ordering::Relaxed);
                    if claimed.is_err() {
                        claim = None;
                        continue;
                    }
                }
                tries += 1;
                let moves = |word| word & (READ | SPINNER) != READ | SPINNER;
                if self.spin_behind_readers(word, moves, &mut looks) {
                    continue;
                }
            }
            if self.sleep_to_write(&mut claim, behind) {
                return note_spins::<M>(looks);
            }
        }
    }

    /// Sleeps in the queue of writers, if the lock is still taken. Returns true if it has acquired
    /// the lock instead.
    fn sleep_to_write(&self, claim: &mut Option<M::Pin>, behind: Behind) -> bool {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        let mut word = self.load();
        loop {
            let is_passed = word & READ != 0 && readers(word) > 0 && behind == Behind::Writer;
            if word == READ || is_passed || self.is_worth_spinning(word) && word & READ == 0 {
                return false;
            }
            let is_free = word & READ != 0 && readers(word) == 0;
            let ours = if claim.is_some() && word & READ != 0 {
                SPINNER
            } else {
                0
            };
            let (new, order) = if is_free {
                // Acquire: pairs with the releases of the readers and the writer before.
                (me::<M>() | word & WAITERS, Ordering::Acquire)
            } else {
                // Relaxed: as in `sleep_to_read`.
                (word & !ours | WRITE_WAITERS, Ordering::Relaxed)
            };
            match self.exchange(word, new, order) {
                Ok(()) if is_free => return true,
                Ok(()) => break,
                Err(other) => word = other,
            }
        }
        *claim = None;
        chain.select(WRITERS);
        chain.wait();
        note_sleep::<M>();
        false
    }

    /// Returns true if a task that holds the chain should spin instead of sleeping: the writer
    /// runs, or is about to acquire the lock.
    fn is_worth_spinning(&self, word: usize) -> bool {
        match word & READ {
            0 => M::is_running(word & !WAITERS) == Some(true),
            _ => readers(word) == 0,
        }
    }

    /// Spins while the same writer runs. Returns true if the lock now has another holder, or none.
    fn spin_behind_writer(&self, word: usize, looks: &mut u32) -> bool {
        let owner = word & !WAITERS;
        let mut round = 0;
        loop {
            match M::is_running(owner) {
                Some(true) => {}
                Some(false) => return false,
                None if round == LOOKS => return false,
                None => round += 1,
            }
            LockDelay::wait::<M>(round, *looks);
            *looks = looks.saturating_add(1);
            let word = self.load();
            if word & READ != 0 || word & !WAITERS != owner {
                return true;
            }
        }
    }

    /// Spins for a while behind readers. Returns true if the readers have left, a writer holds the
    /// lock, or `moves` is true of the word.
    fn spin_behind_readers(
        &self,
        word: usize,
        moves: impl Fn(usize) -> bool,
        looks: &mut u32,
    ) -> bool {
        let mut spun = 0;
        let mut pauses = readers(word).max(PAUSES);
        while spun < LOOPS {
            M::delay(pauses as u32);
            *looks = looks.saturating_add(1);
            let word = self.load();
            if word & READ == 0 || readers(word) == 0 || moves(word) {
                return true;
            }
            pauses = readers(word).max(PAUSES);
            spun += pauses;
        }
        false
    }

    /// Frees a lock whose only holder is the caller, and for which tasks wait. Returns the word if
    /// another reader has come meanwhile.
    #[cold]
    fn free_and_wake(&self, mut word: usize, is_mine: impl Fn(usize) -> bool) -> Result<(), usize> {
        let mut chain = Turnstiles::<M>::global().lock(self.key());
        loop {
            let (queue, left) = match word & WRITE_WAITERS {
                0 => (READERS, 0),
                _ => (WRITERS, word & READ_WAITERS),
            };
            // Release: pairs with the acquire of any that come meanwhile.
            match self.exchange(word, READ | left, Ordering::Release) {
                Ok(()) => {
                    chain.select(queue).broadcast();
                    return Ok(());
                }
                Err(other) if is_mine(other) => word = other,
                Err(other) => return Err(other),
            }
        }
    }
}

// SAFETY: a writer enters by an exchange of a word without readers and without a writer, a reader
// by one of a word without a writer, both with acquire; they leave by exchanges with release that
// remove only what they had added.
unsafe impl<M: Machine, const LOOKS: u32, const TRIES: u32, const LOOPS: usize> RawRw<M>
    for FreebsdRw<M, LOOKS, TRIES, LOOPS>
{
    const NAME: &'static str = "freebsd-rw";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        FreebsdRw {
            word: M::AtomicUsize::new(READ),
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
        let mut word = self.load();
        while is_readable(word) {
            // Acquire: pairs with the release of the last writer.
            match self.exchange(word, word + READER, Ordering::Acquire) {
                Ok(()) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        let mut word = self.load();
        loop {
            let is_last = readers(word) == 1;
            let left = if is_last && word & WAITERS != 0 {
                self.free_and_wake(word, |word| readers(word) == 1 && word & READ != 0)
            } else {
                // Release: pairs with the acquire of the next writer.
                self.exchange(word, word - READER, Ordering::Release)
            };
            match left {
                Ok(()) => return,
                Err(other) => word = other,
            }
        }
    }

    #[inline]
    fn write(&self) {
        // Acquire: pairs with the releases of the readers and the writer before.
        let taken = self.exchange(READ, me::<M>(), Ordering::Acquire);
        if taken.is_err() {
            self.write_slow();
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        let mut word = self.load();
        while word & READ != 0 && readers(word) == 0 && word & SPINNER == 0 {
            // Acquire: as above.
            match self.exchange(word, me::<M>() | word & WAITERS, Ordering::Acquire) {
                Ok(()) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // Release: pairs with the acquire of the next of either kind.
        if let Err(word) = self.exchange(me::<M>(), READ, Ordering::Release) {
            let freed = self.free_and_wake(word, |_| true);
            debug_assert!(freed.is_ok(), "released by a task that does not write");
        }
    }

    unsafe fn try_upgrade(&self) -> bool {
        let mut word = self.load();
        while readers(word) == 1 {
            // Acquire: pairs with the releases of the readers before.
            match self.exchange(word, me::<M>() | word & WAITERS, Ordering::Acquire) {
                Ok(()) => return true,
                Err(other) => word = other,
            }
        }
        false
    }

    #[inline]
    fn is_locked(&self) -> bool {
        let word = self.load();
        word & READ == 0 || readers(word) > 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        let word = self.load();
        word & READ == 0 || word & SPINNER != 0
    }
}

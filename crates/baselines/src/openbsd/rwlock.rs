//! `rwlock(9)`: a reader-writer lock that sleeps.
//!
//! The lock is one word: the writer or the number of readers, and bits for waiters. A task that
//! finds it taken by a writer spins for up to `SPINS` reads, but not while it holds `KERNEL_LOCK`;
//! then it sets the bits of a waiter under `SCHED_LOCK` and sleeps. A release that finds waiters
//! clears these bits and wakes them all, and they try again (OpenBSD 7.0, sys/kern/kern_rwlock.c).
//!
//! | bits | meaning |
//! |---|---|
//! | `WAIT` | tasks sleep for the lock |
//! | `WRWANT` | a writer sleeps for it: new readers wait |
//! | `WRLOCK` | a writer holds it; the rest of the word names the writer |
//! | the rest | how many readers there are |
//!
//! # Protocol
//! A sleeper sets `WAIT` by a compare-and-swap of the word in which it found the lock taken, under
//! `SCHED_LOCK`; a release clears `WAIT` with the same exchange that frees the lock, and wakes
//! under `SCHED_LOCK`, so it finds the sleeper enqueued.

use super::Scheduler;
use core::ptr;
use machine::{Atomic, Machine, Ordering};
use sync::rwlock::RawRw;
use sync::watch::note_spins;

const WAIT: usize = 1;
const WRWANT: usize = 2;
const WRLOCK: usize = 4;
const READER: usize = 8;
/// All bits that do not name the owner.
const MASK: usize = WAIT | WRWANT | WRLOCK;

/// How often a task reads the word before it sleeps (`RW_SPINS`).
const SPINS: u32 = 1000;
/// The number of these reads that are made here. Pauses replace the others: a read of a line that
/// was not written meanwhile takes as long as a pause, but costs a simulator more.
const LOOKS: u32 = 10;
const PAUSES: u32 = 2 * LOOKS;

/// A reader-writer lock of a word. The task that acquires it must release it.
///
/// A task reads the word `SPINS` times before it sleeps.
pub struct SleepRw<M: Machine, const SPINS: u32 = { self::SPINS }> {
    word: M::AtomicUsize,
}

/// The bits that an operation adds, those that keep it out, and those it sets while it waits.
#[derive(Clone, Copy)]
struct Operation {
    add: usize,
    check: usize,
    wait: usize,
}

const READ: Operation = Operation {
    add: READER,
    check: WRLOCK | WRWANT,
    wait: WAIT,
};

/// The operation of a writer. It adds the name of the calling task: the address of its local words,
/// which is unique while the task lives and has its low bits free.
fn write<M: Machine>() -> Operation {
    let me = M::with_locals(|locals| ptr::from_ref(locals) as usize) & !MASK;
    Operation {
        add: me | WRLOCK,
        check: usize::MAX,
        wait: WAIT | WRWANT,
    }
}

impl<M: Machine, const SPINS: u32> SleepRw<M, SPINS> {
    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    fn exchange(&self, word: usize, new: usize, success: Ordering) -> Result<(), usize> {
        self.word
            .compare_exchange(word, new, success, Ordering::Relaxed)
            .map(drop)
    }

    #[inline]
    fn try_enter(&self, operation: Operation) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        // Acquire: pairs with the releases in `exit`.
        word & operation.check == 0
            && self
                .exchange(word, word + operation.add, Ordering::Acquire)
                .is_ok()
    }

    #[cold]
    #[track_caller]
    fn enter(&self, operation: Operation) {
        let scheduler = Scheduler::<M>::of_machine();
        let mut spins = if scheduler.kernel.is_mine() { 0 } else { SPINS };
        let before = spins;
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & operation.check == 0 {
                // Acquire: pairs with the releases in `exit`.
                let entered = self.exchange(word, word + operation.add, Ordering::Acquire);
                if entered.is_ok() {
                    return note_spins::<M>(before - spins);
                }
            } else if word & WRLOCK != 0 && spins >= LOOKS {
                spins -= LOOKS;
                M::delay(PAUSES);
            } else {
                // Relaxed: the task that frees the lock wakes under the lock held here.
                scheduler.sleep(self.key(), || {
                    let waiting = word | operation.wait;
                    self.exchange(word, waiting, Ordering::Relaxed).is_ok()
                });
            }
        }
    }

    /// Releases the lock; `left` computes the new word from the old one.
    #[inline]
    #[track_caller]
    fn exit(&self, left: impl Fn(usize) -> usize) {
        let mut word = self.word.load(Ordering::Relaxed);
        // Release: pairs with the acquire of the next holder.
        while let Err(other) = self.exchange_weak(word, left(word)) {
            word = other;
        }
        if word & WAIT != 0 {
            self.wake();
        }
    }

    fn exchange_weak(&self, word: usize, new: usize) -> Result<usize, usize> {
        self.word
            .compare_exchange_weak(word, new, Ordering::Release, Ordering::Relaxed)
    }

    /// Wakes all waiters. The lock may have been freed: its address is only compared.
    #[cold]
    #[track_caller]
    fn wake(&self) {
        Scheduler::<M>::of_machine().wake(self.key(), usize::MAX);
    }
}

// SAFETY: a writer enters by the exchange of 0, a reader of a word without WRLOCK, both with
// acquire; they leave by exchanges with release that only then remove what they had added.
unsafe impl<M: Machine, const SPINS: u32> RawRw<M> for SleepRw<M, SPINS> {
    const NAME: &'static str = "openbsd-rwlock";
    const MAY_SLEEP: bool = true;

    fn new() -> Self {
        SleepRw {
            word: M::AtomicUsize::new(0),
        }
    }

    #[inline]
    #[track_caller]
    fn read(&self) {
        if !self.try_enter(READ) {
            self.enter(READ);
        }
    }

    #[inline]
    fn try_read(&self) -> bool {
        self.try_enter(READ)
    }

    #[inline]
    #[track_caller]
    unsafe fn read_unlock(&self) {
        self.exit(|word| match word & WAIT {
            0 => word - READER,
            // The waiters look again, even if other readers remain.
            _ => (word - READER) & !(WAIT | WRWANT),
        });
    }

    #[inline]
    #[track_caller]
    fn write(&self) {
        let operation = write::<M>();
        // Acquire: pairs with the releases in `exit`.
        if self.exchange(0, operation.add, Ordering::Acquire).is_err() {
            self.enter(operation);
        }
    }

    #[inline]
    fn try_write(&self) -> bool {
        self.try_enter(write::<M>())
    }

    #[inline]
    #[track_caller]
    unsafe fn write_unlock(&self) {
        self.exit(|_| 0);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !(WAIT | WRWANT) != 0
    }

    #[inline]
    fn is_write_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WRLOCK != 0
    }
}

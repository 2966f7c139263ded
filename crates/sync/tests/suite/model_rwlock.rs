//! The reader-writer lock with its turnstile, under the checker.

use crate::parking;

use loomed::Loomed;
use loomed::flaw::{Flaw, Site, must_be_found};
use machine::{Atomic, AtomicInt, Atomics, Ordering};
use parking::*;
use std::ptr;
use sync::rwlock::{RawRw, SpinParkRw};
use sync::turnstile::Turnstiles;

#[test]
fn two_writers() {
    explore(None, || readers_writers::<SpinParkRw<Loomed, 0>>(2, 0));
}

#[test]
fn writer_and_reader() {
    explore(None, || readers_writers::<SpinParkRw<Loomed, 0>>(1, 1));
}

/// All schedules with at most two preemptions.
#[test]
fn writer_and_two_readers() {
    explore(Some(2), || readers_writers::<SpinParkRw<Loomed, 0>>(1, 2));
}

/// All schedules with at most two preemptions.
#[test]
fn two_writers_and_reader() {
    explore(Some(2), || readers_writers::<SpinParkRw<Loomed, 0>>(2, 1));
}

/// A writer that goes on as a reader still reads what it has written, and nobody is left asleep.
#[test]
fn a_writer_that_becomes_a_reader() {
    explore(Some(1), downgrading::<SpinParkRw<Loomed, 0>>);
}

#[test]
fn downgrade_without_release() {
    let text = include_str!("../../src/rwlock/spin_park.rs");
    let downgrade = "unsafe fn try_downgrade(&self) -> bool {";
    let site = Site::after("rwlock/spin_park.rs", text, downgrade);
    must_be_found(Flaw::Relaxed, site, || {
        explore(Some(2), downgrading::<SpinParkRw<Loomed, 0>>);
    });
}

/// The mutants are made from this one, so it has to pass.
#[test]
fn faithful() {
    explore(None, || readers_writers::<MutantRw<FAITHFUL>>(1, 1));
    explore(None, || readers_writers::<MutantRw<FAITHFUL>>(2, 0));
    explore(Some(2), || readers_writers::<MutantRw<FAITHFUL>>(1, 2));
}

#[test]
fn unlock_without_release() {
    let text = include_str!("../../src/rwlock/spin_park.rs");
    for unlock in [
        "unsafe fn read_unlock(&self) {",
        "unsafe fn write_unlock(&self) {",
    ] {
        let site = Site::after("rwlock/spin_park.rs", text, unlock);
        must_be_found(Flaw::Relaxed, site, || {
            explore(None, || readers_writers::<SpinParkRw<Loomed, 0>>(1, 1));
        });
    }
}

#[test]
fn last_reader_does_not_signal() {
    assert!(caught(None, || readers_writers::<MutantRw<NO_DRAIN>>(1, 1)));
}

#[test]
fn writer_parks_without_recheck() {
    assert!(caught(None, || readers_writers::<MutantRw<NO_RECHECK>>(
        2, 0
    )));
}

#[test]
fn readers_woken_but_not_counted() {
    assert!(caught(Some(2), || readers_writers::<MutantRw<UNCOUNTED>>(
        1, 2
    )));
}

/// The last reader wakes no task.
const NO_DRAIN: u8 = 11;
/// A writer's release wakes readers without counting them.
const UNCOUNTED: u8 = 12;

const WRITER: u32 = 1;
const PARKED: u32 = 2;
const DRAIN: u32 = 4;
const READER: u32 = 8;

/// The lock without spinning, with the bug `BUG`.
struct MutantRw<const BUG: u8> {
    word: <Loomed as Atomics>::AtomicU32,
}

impl<const BUG: u8> MutantRw<BUG> {
    fn key(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    fn add(&self, bits: u32) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & WRITER == 0
            && self
                .word
                .compare_exchange(
                    word,
                    word.wrapping_add(bits),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    fn note(&self, bits: u32, bit: u32) -> bool {
        if BUG == NO_RECHECK {
            self.word.fetch_or(bit, Ordering::Relaxed);
            return true;
        }
        let mut word = self.word.load(Ordering::Relaxed);
        while word & bits != 0 {
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

// SAFETY: without a bug, as for the original; the mutants must be found.
unsafe impl<const BUG: u8> RawRw<Loomed> for MutantRw<BUG> {
    const NAME: &'static str = "mutant";

    fn new() -> Self {
        MutantRw {
            word: Atomic::new(0),
        }
    }

    fn read(&self) {
        while !self.add(READER) {
            let chain = Turnstiles::<Loomed>::global().lock(self.key());
            if self.note(WRITER, PARKED) {
                return chain.wait();
            }
        }
    }

    fn try_read(&self) -> bool {
        self.add(READER)
    }

    unsafe fn read_unlock(&self) {
        let left = self.word.fetch_sub(READER, Ordering::Release);
        let left = left.wrapping_sub(READER);
        if left & DRAIN != 0 && left / READER == 0 && BUG != NO_DRAIN {
            let mut chain = Turnstiles::<Loomed>::global().lock(self.key());
            chain.select(2).signal();
        }
    }

    fn write(&self) {
        while !self.add(WRITER) {
            let mut chain = Turnstiles::<Loomed>::global().lock(self.key());
            if self.note(WRITER, PARKED) {
                chain.select(1);
                chain.wait();
            }
        }
        if self.word.load(Ordering::Acquire) / READER != 0 {
            let mut chain = Turnstiles::<Loomed>::global().lock(self.key());
            if self.note(!(WRITER | PARKED | DRAIN), DRAIN) {
                chain.select(2);
                chain.wait();
                self.word.fetch_and(!DRAIN, Ordering::Acquire);
            } else {
                self.word.load(Ordering::Acquire);
            }
        }
    }

    fn try_write(&self) -> bool {
        false
    }

    unsafe fn write_unlock(&self) {
        let alone = self
            .word
            .compare_exchange(WRITER, 0, Ordering::Release, Ordering::Relaxed);
        if alone.is_err() {
            let mut chain = Turnstiles::<Loomed>::global().lock(self.key());
            let readers = chain.broadcast() as u32 * READER;
            chain.select(1).signal();
            let parked = if chain.has_waiters() { PARKED } else { 0 };
            let readers = if BUG == UNCOUNTED { 0 } else { readers };
            self.word.store(readers | parked, Ordering::Release);
        }
    }

    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & !PARKED != 0
    }

    fn is_write_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & WRITER != 0
    }
}

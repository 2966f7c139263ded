//! The protocol of one slot, with one bug or none: a copy, to see that the models notice.

use super::{Found, OneSlot};
use loomed::Loomed;
use machine::{Atomic, AtomicInt, Atomics, Cpus, Frame, Ordering};
use sync::sleepq::{Hashed, SleepQueue};
use vm::swap::Eviction;

/// No bug.
pub const FAITHFUL: u8 = 0;
/// A look-up does not look again when it has the page.
pub const NO_SECOND_LOOK: u8 = 1;
/// A task goes to sleep without looking at the word again.
pub const SLEEPS_BLINDLY: u8 = 2;
/// A task that is done with a slot wakes no other.
pub const WAKES_NOBODY: u8 = 3;
/// The last release frees a slot that a task reads in.
pub const FREES_BUSY: u8 = 4;
/// An eviction does not make the slot busy.
pub const EVICTS_UNLOCKED: u8 = 5;
/// Changes of the word order nothing.
pub const RELAXED: u8 = 6;
/// A reader that has failed leaves the slot busy.
pub const KEEPS_BUSY: u8 = 7;
/// A task that is done with a slot leaves it without references.
pub const NEVER_FREES: u8 = 8;

const BUSY: u64 = 1;
const WAITERS: u64 = 2;
const CACHED: u64 = 4;
const FRAME: u64 = (u32::MAX as u64) << 3 | CACHED;
const REFERENCE: u64 = 1 << 35;

pub struct Mutant<const BUG: u8> {
    word: <Loomed as Atomics>::AtomicU64,
    waiting: Hashed<Loomed>,
}

fn cached(word: u64) -> Option<Frame> {
    (word & CACHED != 0).then_some(Frame((word >> 3) as u32))
}

fn entry(frame: Option<Frame>) -> u64 {
    frame.map_or(0, |frame| u64::from(frame.0) << 3 | CACHED)
}

/// 0 if the slot has no references and no task is busy with it.
fn kept(word: u64) -> u64 {
    if word < REFERENCE && word & BUSY == 0 {
        0
    } else {
        word
    }
}

impl<const BUG: u8> Mutant<BUG> {
    fn change(&self, next: impl Fn(u64) -> Option<u64>) -> Option<(u64, u64)> {
        let mut old = self.word.load(Ordering::Relaxed);
        loop {
            let new = next(old)?;
            let order = match BUG {
                RELAXED => Ordering::Relaxed,
                _ => Ordering::AcqRel,
            };
            match self
                .word
                .compare_exchange(old, new, order, Ordering::Relaxed)
            {
                Ok(_) => {
                    if BUG != WAKES_NOBODY && old & !new & WAITERS != 0 {
                        self.waiting.wake(self.key(), usize::MAX);
                    }
                    return Some((old, new));
                }
                Err(now) => old = now,
            }
        }
    }

    fn settle(&self, frame: Option<Frame>) -> u64 {
        let settled = |word: u64| {
            let word = word & !(BUSY | WAITERS | FRAME) | entry(frame);
            Some(if BUG == NEVER_FREES { word } else { kept(word) })
        };
        self.change(settled).expect("settled").1
    }

    fn wait(&self) {
        let wait = || {
            let seen = |word: u64| (word & BUSY != 0).then_some(word | WAITERS);
            self.change(seen).is_some() || BUG == SLEEPS_BLINDLY
        };
        self.waiting.sleep(self.key(), wait);
    }

    fn key(&self) -> *const () {
        std::ptr::from_ref(&self.word).cast()
    }
}

impl<const BUG: u8> OneSlot for Mutant<BUG> {
    fn new(_: machine::CpuRange) -> Self {
        Mutant {
            word: Atomic::new(0),
            waiting: Hashed::new(),
        }
    }

    fn allocate(&self, frame: Frame) -> bool {
        let claimed = |word: u64| (word == 0).then_some(REFERENCE | entry(Some(frame)));
        self.change(claimed).is_some()
    }

    fn retain(&self) {
        self.word.fetch_add(REFERENCE, Ordering::Relaxed);
    }

    fn release(&self) -> Option<Frame> {
        let released = |word: u64| {
            let word = word - REFERENCE;
            let free = BUG == FREES_BUSY && word < REFERENCE;
            Some(if free { 0 } else { kept(word) })
        };
        let (old, new) = self.change(released)?;
        cached(old).filter(|_| new == 0)
    }

    fn swap_in<H>(
        &self,
        hold: impl Fn(Frame) -> Option<H>,
        load: impl FnOnce() -> Option<Frame>,
    ) -> Found<H> {
        loop {
            let word = self.word.load(Ordering::Acquire);
            if let Some(frame) = cached(word) {
                let same = || cached(self.word.load(Ordering::Acquire)) == Some(frame);
                if let Some(held) = hold(frame)
                    && (BUG == NO_SECOND_LOOK || same())
                {
                    return Found::Cached(held);
                }
            } else if word == 0 {
                return Found::Gone;
            } else if word & BUSY == 0 {
                let absent = |word| word >= REFERENCE && word & (BUSY | CACHED) == 0;
                if self
                    .change(|word| absent(word).then_some(word | BUSY))
                    .is_some()
                {
                    let Some(frame) = load() else {
                        if BUG != KEEPS_BUSY {
                            self.settle(None);
                        }
                        return Found::Failed;
                    };
                    return Found::Loaded(frame, self.settle(Some(frame)) != 0);
                }
            }
            if word & BUSY != 0 {
                self.wait();
            } else {
                Loomed::relax(0);
            }
        }
    }

    fn uncache(&self, frame: Frame, freeze: impl FnOnce() -> bool) -> Eviction {
        let here = |word: u64| cached(word) == Some(frame) && word & BUSY == 0;
        let busy = if BUG == EVICTS_UNLOCKED { 0 } else { BUSY };
        if self
            .change(|word| here(word).then_some(word | busy))
            .is_none()
        {
            return Eviction::Kept;
        }
        if freeze() {
            self.settle(None);
            return Eviction::Evicted;
        }
        match self.settle(Some(frame)) {
            0 => Eviction::Released,
            _ => Eviction::Kept,
        }
    }

    fn is_free(&self) -> bool {
        self.word.load(Ordering::Acquire) == 0
    }
}

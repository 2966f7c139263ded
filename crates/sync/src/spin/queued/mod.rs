//! Linux's queued spin lock, and a variant with a NUMA-aware queue.
//!
//! One waiter spins on the lock itself (*pending*), all further ones form an MCS queue. The first
//! of the queue leaves it when it acquires the lock, so a release needs no node, and the lock is
//! one word:
//!
//! ```text
//! bits   0–7 locked | 8 pending | 16–17 level, 18–31 number + 1 of the last waiter's place;
//!        0: no queue
//!
//! lock:    if cas(word, 0, LOCKED): done
//!          if no task waits: word |= PENDING; wait until not LOCKED; PENDING becomes LOCKED
//!          else: last = exchange(word.tail, mine)
//!                if last: last.next = mine; wait until mine.turn
//!                wait until neither LOCKED nor PENDING
//!                if cas(word, mine, LOCKED): done
//!                word |= LOCKED; wait until mine.next; mine.next.turn = 1
//! unlock:  word &= !LOCKED
//! ```
//!
//! The steps are those of `kernel/locking/qspinlock.c` in Linux 6.12, with two differences. Linux
//! stores single bytes of the word; Rust allows only one size of access to an atomic, so a release
//! is a locked instruction here. And Linux has four places per CPU (for a task and what interrupts
//! it); here a task has them ([`place`]), since threads of the host are no CPUs.
//!
//! In the NUMA-aware lock (CNA: Dice and Kogan, EuroSys 2019; Kogan's patches for Linux) the first
//! of the queue looks for a waiter of its own NUMA node, and moves those that it passes over to a
//! secondary queue. A place's `turn` passes that queue on, as the code of its last place, whose
//! `next` is its first. One in 65,536 of [`Cna`]'s hand-overs lets the secondary queue go first,
//! and while that is empty, 255 in 256 do not search (the paper's `THRESHOLD` and `THRESHOLD2`).

mod near;

use super::mcs::linked;
use super::place::{self, Place};
use crate::ecosystem::impl_lock_apis;
use crate::effort::note_spins;
use crate::raw::RawLock;
use core::ptr;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

/// A task holds the lock.
const LOCKED: u32 = 0xff;
/// The value of the locked byte while a task holds the lock.
const HELD: u32 = 1;
/// A task waits on the lock itself.
const PENDING: u32 = 1 << 8;
/// The code of the last place in the queue.
const TAIL: u32 = !0 << place::SHIFT;
/// A turn has come; with it comes the code of the last place in the secondary queue, if that is not
/// empty.
const GO: u32 = 1;
/// How often a task checks if the pending task has acquired the lock, before it queues.
const HAND_OVER: u32 = 512;

/// Linux's lock: 4 bytes. FIFO, except for a task that finds none pending.
pub type Qspinlock<M> = Queued<M, 0>;

/// The NUMA-aware lock: 4 bytes. Unfair to other NUMA nodes for a while.
pub type Cna<M> = Queued<M, 0xffff>;

/// A queued lock; one in `KEEP` + 1 of its hand-overs lets waiters of other NUMA nodes go first.
/// `KEEP` is 0 or a mask of low bits.
pub struct Queued<M: Machine, const KEEP: u32> {
    word: M::AtomicU32,
}

impl<M: Machine, const KEEP: u32> Queued<M, KEEP> {
    /// Acquires the lock if it is free and no task waits; otherwise returns the word.
    #[inline]
    fn take(&self) -> Result<(), u32> {
        // Acquire: pairs with the release in `unlock`; all writes since then were exchanges.
        self.word
            .compare_exchange(0, HELD, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
    }

    #[cold]
    fn lock_contended(&self, seen: u32) {
        if let Err(seen) = self.lock_pending(seen) {
            match place::enter::<M>() {
                Some(place) => self.lock_queued(&place, seen),
                None => self.lock_without_place(),
            }
        }
    }

    /// Acquires the lock as the pending task, which waits on the lock itself, unless another is
    /// pending or queued.
    fn lock_pending(&self, mut seen: u32) -> Result<(), u32> {
        if seen == PENDING {
            let mut looks = 0;
            M::spin_until(|| {
                looks += 1;
                seen = self.word.load(Ordering::Relaxed);
                seen != PENDING || looks == HAND_OVER
            });
        }
        if seen & !LOCKED != 0 {
            return Err(seen);
        }
        // Acquire: as in `take`, if the lock has become free.
        seen = self.word.fetch_or(PENDING, Ordering::Acquire);
        if seen & !LOCKED != 0 {
            if seen & PENDING == 0 {
                seen = self.word.fetch_and(!PENDING, Ordering::Relaxed) & !PENDING;
            }
            return Err(seen);
        }
        if seen & LOCKED != 0 {
            self.wait_while(LOCKED);
        }
        self.word.fetch_sub(PENDING - HELD, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until none of `bits` is set, and returns the word.
    fn wait_while(&self, bits: u32) -> u32 {
        let mut seen = 0;
        wait::<M>(|| {
            // Acquire: pairs with the release in `unlock`; all writes since then were exchanges.
            seen = self.word.load(Ordering::Acquire);
            seen & bits == 0
        });
        seen
    }

    /// Acquires the lock through the queue; the word was `seen` a moment ago.
    fn lock_queued(&self, place: &Place<M>, seen: u32) {
        let node = place.node();
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        node.turn.store(0, Ordering::Relaxed);
        if KEEP != 0 {
            node.home.store(M::numa_node() as u32, Ordering::Relaxed);
        }
        if self.try_lock().is_some() {
            return;
        }
        if let Some(last) = place.at(self.exchange_tail(seen, node.code)) {
            // Release: pairs with the acquire loads of `next` in `linked` and in `near`.
            last.next.store(node.address(), Ordering::Release);
            // Acquire: pairs with the release of the predecessor.
            wait::<M>(|| node.turn.load(Ordering::Acquire) != 0);
        }
        let seen = self.wait_while(LOCKED | PENDING);
        if seen & TAIL == node.code && self.take_last(place, seen) {
            return;
        }
        // A task is queued behind this one, or will be, since it has seen the tail after it had set
        // `PENDING`.
        self.word.fetch_or(HELD, Ordering::Relaxed);
        let next = linked::<M>(&node.next);
        let (next, rest) = near::successor::<M, KEEP>(place, next);
        // Release: pairs with the acquire of the successor's wait.
        next.turn.store(GO | rest, Ordering::Release);
    }

    /// Puts `code` at the end of the queue; returns the code that was there.
    fn exchange_tail(&self, mut seen: u32, code: u32) -> u32 {
        loop {
            // Release: a successor finds the node initialised. Acquire: this task finds the
            // predecessor's so.
            match self.word.compare_exchange_weak(
                seen,
                seen & !TAIL | code,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return seen & TAIL,
                Err(newer) => seen = newer,
            }
        }
    }

    /// Acquires the lock for the only place in the queue, which the secondary queue then replaces.
    /// Fails if a task has queued meanwhile.
    fn take_last(&self, place: &Place<M>, seen: u32) -> bool {
        let Some(last) = place.secondary() else {
            let alone =
                self.word
                    .compare_exchange(seen, HELD, Ordering::Relaxed, Ordering::Relaxed);
            return alone.is_ok();
        };
        let first = last.next.load(Ordering::Relaxed);
        last.next.store(ptr::null_mut(), Ordering::Relaxed);
        // Release: a task that queues behind `last` writes its `next` after the line above.
        let alone = self.word.compare_exchange(
            seen,
            last.code | HELD,
            Ordering::Release,
            Ordering::Relaxed,
        );
        match alone {
            // Release: pairs with the acquire of that task's wait.
            Ok(_) => place.of(first).turn.store(GO, Ordering::Release),
            Err(_) => last.next.store(first, Ordering::Relaxed),
        }
        alone.is_ok()
    }

    /// Acquires the lock for a task without a free place.
    pub(super) fn lock_without_place(&self) {
        while self.try_lock().is_none() {
            wait::<M>(|| !self.is_locked());
        }
    }
}

fn wait<M: Machine>(mut is_over: impl FnMut() -> bool) {
    let mut looks = 0u32;
    M::spin_until(|| {
        looks = looks.saturating_add(1);
        is_over()
    });
    note_spins::<M>(looks);
}

// SAFETY: a task acquires the lock by exchanging 0 for `HELD`; as the one that has set `PENDING`,
// which keeps the first of the queue away, once `LOCKED` is clear; or as the first of the queue,
// once both are. Only the holder clears `LOCKED`.
unsafe impl<M: Machine, const KEEP: u32> RawLock<M> for Queued<M, KEEP> {
    type Held = ();
    const NAME: &'static str = if KEEP == 0 { "qspinlock" } else { "cna" };

    fn new() -> Self {
        Queued {
            word: M::AtomicU32::new(0),
        }
    }

    #[inline]
    fn lock(&self) {
        if let Err(seen) = self.take() {
            self.lock_contended(seen);
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        (!self.is_locked()).then(|| self.take().ok()).flatten()
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // Release: pairs with the acquire in `take`, `lock_pending` and `wait_while`.
        self.word.fetch_and(!LOCKED, Ordering::Release);
    }

    /// Returns true also while the lock is being handed over, as in Linux.
    #[inline]
    fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) != 0
    }
}

impl_lock_apis!([M: Machine<AtomicU32: ConstInit>, const KEEP: u32] Queued<M, KEEP> = Queued {
    word: ConstInit::ZERO,
});

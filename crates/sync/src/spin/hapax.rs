//! Hapax locks (Dice and Kogan, 2025): each acquisition has a number that no other has.
//!
//! A task exchanges its number for that of the last that came, and waits until that one has
//! departed. No task has a pointer to what belongs to another, so there is no node that must stay
//! in place. FIFO.
//!
//! ```text
//! arrived, departed:  the last numbers that came and went; equal if the lock is free
//!
//! lock:    before = swap(arrived, held)
//!          until departed == before: wait for a change of slot(before)
//! unlock:  departed = held; slot(held) = held
//! ```
//!
//! A waiter reads `departed` once, and again when its predecessor's slot has changed: one of a few
//! hundred words that all locks of a machine share. Two numbers may have one slot, so a change may
//! mean nothing. No change is missed: the waiter reads the slot before `departed`, which the
//! releasing task writes before the slot.
//!
//! A task takes numbers from a block of its own, and blocks from a counter of the machine.

use crate::ecosystem::impl_lock_api;
use crate::effort::note_spins;
use crate::locals::HAPAX;
use crate::padded::Padded;
use crate::raw::RawLock;
use alloc::boxed::Box;
use machine::{Atomic, AtomicInt, ConstInit, Machine, Ordering};

/// Numbers of a block.
const BLOCK: usize = 1 << 16;
/// Slots of a machine.
const SLOTS: usize = 256;

/// The lock: 16 bytes. FIFO. The first acquisition on a machine allocates 32 KiB, for all locks.
pub struct Hapax<M: Machine> {
    arrived: M::AtomicUsize,
    departed: M::AtomicUsize,
}

/// An acquisition of a [`Hapax`] lock: its number.
pub struct HapaxHeld(usize);

/// What the locks of a machine share.
struct Shared<M: Machine> {
    /// Blocks that tasks have taken.
    blocks: M::AtomicUsize,
    /// The number that departed last, of those that have the slot.
    slots: Box<[Padded<M::AtomicUsize>]>,
}

impl<M: Machine> Shared<M> {
    fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| Shared {
            blocks: M::AtomicUsize::new(0),
            slots: (0..SLOTS).map(|_| Padded(M::AtomicUsize::new(0))).collect(),
        })
    }

    fn slot(&self, number: usize) -> &M::AtomicUsize {
        // The next numbers of a task, and those of the next task, have other slots.
        &self.slots[(number ^ (number / BLOCK * 37)) % SLOTS]
    }
}

/// A number that no other acquisition has; never 0.
#[inline]
fn number<M: Machine>() -> usize {
    M::with_locals(|locals| {
        let word = &locals.words[HAPAX];
        let mut number = word.get();
        if number.is_multiple_of(BLOCK) {
            // Relaxed: that each addition has another result is enough.
            let blocks = Shared::<M>::of_machine()
                .blocks
                .fetch_add(1, Ordering::Relaxed);
            number = blocks * BLOCK + 1;
        }
        word.set(number + 1);
        number
    })
}

impl<M: Machine> Hapax<M> {
    /// Waits until the acquisition `before` has been released.
    #[cold]
    fn wait(&self, before: usize) {
        let slot = Shared::<M>::of_machine().slot(before);
        let mut looks = 0u32;
        loop {
            // Acquire: what was written before the slot is seen, `departed` with it.
            let seen = slot.load(Ordering::Acquire);
            if self.is_next(before) {
                break;
            }
            M::spin_until(|| {
                looks = looks.saturating_add(1);
                // Acquire: pairs with the release in `unlock`.
                slot.load(Ordering::Acquire) != seen
            });
        }
        note_spins::<M>(looks);
    }

    /// Returns true if the acquisition `before` has been released.
    #[inline]
    fn is_next(&self, before: usize) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.departed.load(Ordering::Acquire) == before
    }
}

// SAFETY: no two acquisitions have one number, so one task follows each, and it goes on when that
// acquisition has been released.
unsafe impl<M: Machine> RawLock<M> for Hapax<M> {
    type Held = HapaxHeld;
    const NAME: &'static str = "hapax";

    fn new() -> Self {
        Hapax {
            arrived: M::AtomicUsize::new(0),
            departed: M::AtomicUsize::new(0),
        }
    }

    #[inline]
    fn lock(&self) -> HapaxHeld {
        let held = number::<M>();
        // Relaxed: the predecessor's release is acquired from `departed`.
        let before = self.arrived.swap(held, Ordering::Relaxed);
        if !self.is_next(before) {
            self.wait(before);
        }
        HapaxHeld(held)
    }

    #[inline]
    fn try_lock(&self) -> Option<HapaxHeld> {
        // Acquire, of the number that departed: then what its holder wrote is seen, and if it is
        // still the last that came, nobody has held the lock since.
        let last = self.departed.load(Ordering::Acquire);
        if self.arrived.load(Ordering::Relaxed) != last {
            return None;
        }
        let held = number::<M>();
        let order = Ordering::Relaxed;
        self.arrived
            .compare_exchange(last, held, order, order)
            .ok()?;
        Some(HapaxHeld(held))
    }

    #[inline]
    unsafe fn unlock(&self, HapaxHeld(held): HapaxHeld) {
        // Release: pairs with the acquire in `is_next` and `try_lock`.
        self.departed.store(held, Ordering::Release);
        // Release: pairs with the acquire in `wait`.
        Shared::<M>::of_machine()
            .slot(held)
            .store(held, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.arrived.load(Ordering::Relaxed) != self.departed.load(Ordering::Relaxed)
    }
}

impl_lock_api!([M: Machine<AtomicUsize: ConstInit>] Hapax<M> = Hapax {
    arrived: ConstInit::ZERO,
    departed: ConstInit::ZERO,
});

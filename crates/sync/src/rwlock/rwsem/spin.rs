//! The spinning of writers for an [`Rwsem`].

use super::{BY_READERS, HANDOFF, HELD, READER, Rwsem, UNSPINNABLE, WRITER};
use crate::effort::note_spins;
use machine::{Atomic, AtomicInt, Machine, Ordering};

/// Pauses between two reads of a lock that readers hold.
const PAUSES: u32 = 4;
/// The most readers that lengthen a writer's spin.
const MOST_READERS: u64 = 30;

/// The owner that a spinning task waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// None, or a reader that is not recorded yet.
    None,
    /// A running writer.
    Writer,
    /// One or more readers.
    Readers,
    /// A writer that is off its CPU, or readers behind which no task may spin; or the spinner
    /// itself is to leave its CPU.
    Unspinnable,
}

impl Owner {
    fn of(owner: usize) -> Self {
        match owner {
            0 => Owner::None,
            _ if owner & UNSPINNABLE != 0 => Owner::Unspinnable,
            _ if owner & BY_READERS != 0 => Owner::Readers,
            _ => Owner::Writer,
        }
    }
}

impl<M: Machine, const SPIN: u64, const WAIT: u64> Rwsem<M, SPIN, WAIT> {
    /// Spins while that may help. Returns true if it acquired the lock for writing.
    pub(super) fn spin(&self) -> bool {
        if M::is_wanted() || !self.is_spinnable() {
            return false;
        }
        let Some(_first) = self.spinners.enter(M::is_wanted) else {
            return false;
        };
        let mut rounds = 0;
        let taken = self.spin_as_first(&mut rounds);
        note_spins::<M>(rounds);
        taken
    }

    /// Returns true if spinning may help a new task. (A reader recorded as the owner may have left,
    /// so it does not count.)
    fn is_spinnable(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        match Owner::of(owner) {
            Owner::Unspinnable => false,
            Owner::Writer => M::is_running(owner) != Some(false),
            Owner::None | Owner::Readers => true,
        }
    }

    fn spin_as_first(&self, rounds: &mut u32) -> bool {
        let mut readers_until = None;
        loop {
            let owner = self.spin_on_owner();
            if owner == Owner::Unspinnable {
                return false;
            }
            if self.steal() {
                return true;
            }
            if owner != Owner::Writer && M::is_wanted() {
                return false;
            }
            if owner == Owner::Readers {
                let until = *readers_until.get_or_insert_with(|| self.patience());
                if M::now() > until {
                    self.forbid_spinning();
                    return false;
                }
                M::delay(PAUSES);
            } else {
                readers_until = None;
                M::relax(*rounds);
            }
            *rounds = rounds.saturating_add(1);
        }
    }

    /// Waits while the same writer owns the lock and runs; returns the owner after that.
    pub(super) fn spin_on_owner(&self) -> Owner {
        let owner = self.owner.load(Ordering::Relaxed);
        let (mut now, mut rounds) = (owner, 0);
        while now == owner && Owner::of(owner) == Owner::Writer {
            if M::is_wanted() || M::is_running(owner) == Some(false) {
                return Owner::Unspinnable;
            }
            M::relax(rounds);
            rounds = rounds.saturating_add(1);
            now = self.owner.load(Ordering::Relaxed);
        }
        note_spins::<M>(rounds);
        Owner::of(now)
    }

    /// Acquires the lock for writing, ahead of the queue, if it is free and not to be handed over.
    /// Returns true if it did.
    fn steal(&self) -> bool {
        let mut count = self.count.load(Ordering::Relaxed);
        while count & (HELD | HANDOFF) == 0 {
            // Acquire: pairs with the releases of the readers and the writer before.
            match self.count.compare_exchange(
                count,
                count | WRITER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => count = other,
            }
        }
        false
    }

    /// The time until which a writer spins behind readers.
    fn patience(&self) -> u64 {
        let readers = (self.count.load(Ordering::Relaxed) / READER) as u64;
        M::now() + SPIN + readers.min(MOST_READERS) * SPIN / 20
    }

    /// Makes tasks no longer spin behind these readers.
    fn forbid_spinning(&self) {
        let mut owner = self.owner.load(Ordering::Relaxed);
        while Owner::of(owner) == Owner::Readers {
            let forbidden = owner | UNSPINNABLE;
            match self.owner.compare_exchange(
                owner,
                forbidden,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => owner = other,
            }
        }
    }

    /// Lets tasks spin again, after the readers have left.
    pub(super) fn allow_spinning(&self) {
        if self.owner.load(Ordering::Relaxed) & UNSPINNABLE != 0 {
            self.owner.fetch_and(!UNSPINNABLE, Ordering::Relaxed);
        }
    }
}

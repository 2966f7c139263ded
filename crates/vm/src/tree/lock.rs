//! Locking the slots of a range.

use super::locked::Locked;
use super::{ALL, Place, Slot, Tree};
use crate::error::Error;
use crate::lock::SlotLock;
use crate::system::System;
use machine::VaRange;
use sync::RawLock;

/// The token that the holder of a slot's lock gives back; `None` if it was taken unwatched.
pub(super) type Held<M> = Option<<SlotLock<M> as RawLock<M>>::Held>;

/// The slots that a task is about to lock: those that a range overlaps.
#[must_use = "nothing is locked yet"]
pub(crate) struct Lock<'a, S: System> {
    pub(super) tree: &'a Tree<S>,
    /// The place at the range's start, as far as the caller knows.
    pub(super) place: Place<'a, S>,
    /// Not empty, and in [`ALL`].
    pub(super) range: VaRange,
    pub(super) watch: Watch,
}

/// Says if observers see that a slot is locked.
#[derive(Clone, Copy)]
pub(super) enum Watch {
    /// Observers see the first slot of an operation only.
    Watched,
    /// The task holds another slot already.
    Unwatched,
}

impl<S: System> Tree<S> {
    /// The slots of `range`.
    #[inline]
    pub(crate) fn over(&self, range: VaRange) -> Lock<'_, S> {
        self.at(self.find(range.start), range)
    }

    /// The slots of a range whose start was found in `place`.
    #[inline]
    pub(crate) fn at<'a>(&'a self, place: Place<'a, S>, range: VaRange) -> Lock<'a, S> {
        debug_assert!(
            range.start < range.end && range.end <= ALL.end,
            "{range:?} has no slots"
        );
        debug_assert!(
            place.range.contains(range.start),
            "{range:?} begins in another slot"
        );
        Lock {
            tree: self,
            place,
            range,
            watch: Watch::Watched,
        }
    }

    /// All of the slot that covers `address`.
    pub(crate) fn around(&self, address: usize) -> Lock<'_, S> {
        let place = self.find(address);
        self.at(place, place.range)
    }

    /// All slots.
    pub(crate) fn all(&self) -> Lock<'_, S> {
        self.over(ALL)
    }
}

impl<'a, S: System> Lock<'a, S> {
    /// For a task that holds slots already: of lower addresses, or of another space, for whose
    /// slots no task waits while it holds one of this space.
    pub(crate) fn more(self) -> Self {
        Lock {
            watch: Watch::Unwatched,
            ..self
        }
    }

    /// Locks the slots.
    ///
    /// An error (no memory for a node) leaves nothing locked and nothing changed.
    #[track_caller]
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn lock(self) -> Result<Locked<'a, S>, Error> {
        let mut locked = Locked::none(self.tree);
        locked.lock(self)?;
        Ok(locked)
    }

    /// Locks slots that the range covers wholly, or one of level 0: that needs no memory.
    #[track_caller]
    #[inline]
    pub(crate) fn lock_whole(self) -> Locked<'a, S> {
        debug_assert!(
            self.place.level == 0 || self.place.range.start == self.range.start,
            "a part of a large slot is locked as a whole"
        );
        let locked = self.lock();
        locked.unwrap_or_else(|_| unreachable!("these slots are not subdivided"))
    }

    /// Locks the slot at `place`, which the range covers wholly or which is of level 0, if that
    /// needs no waiting.
    #[track_caller]
    pub(crate) fn try_lock(self) -> Option<Locked<'a, S>> {
        let Lock { place, range, .. } = self;
        debug_assert!(
            place.level == 0 || range == place.range,
            "a part of a large slot is locked as a whole"
        );
        debug_assert!(range.common(place.range) == range, "one slot has not all");
        let slot = place.slot;
        let held = match self.watch {
            Watch::Watched => Some(slot.lock.try_lock()?),
            Watch::Unwatched => slot.lock.raw().try_lock().map(|()| None)?,
        };
        if slot.child().is_some() || slot.is_shared() {
            // It was subdivided meanwhile, or would need waiting.
            unlock(slot, held);
            return None;
        }
        Some(Locked::one(self.tree, place, range, held))
    }
}

#[inline]
#[track_caller]
pub(super) fn lock<S: System>(slot: &Slot<S>, watch: Watch) -> Held<S::Machine> {
    let held = lock_beside_walks(slot, watch);
    slot.wait_for_walks();
    machine::invariant!(S::Machine: slot.is_held_alone(), "a walk came in spite of the lock");
    held
}

/// Locks the slot, which walks may share meanwhile, so the caller must not change it.
#[inline]
#[track_caller]
pub(super) fn lock_beside_walks<S: System>(slot: &Slot<S>, watch: Watch) -> Held<S::Machine> {
    match watch {
        Watch::Watched => Some(slot.lock.lock()),
        Watch::Unwatched => {
            slot.lock.raw().lock();
            None
        }
    }
}

/// Releases a slot that `lock` acquired; `held` is its result.
#[inline]
pub(super) fn unlock<S: System>(slot: &Slot<S>, held: Held<S::Machine>) {
    // SAFETY: the lock is held by the caller: watched if there is something to give
    // back to the observer, unwatched otherwise.
    unsafe {
        match held {
            Some(held) => slot.lock.unlock(held),
            None => slot.lock.raw().unlock(()),
        }
    }
}

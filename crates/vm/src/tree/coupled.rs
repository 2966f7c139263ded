//! Walks over all slots that no operation overtakes.

#[cfg(test)]
mod model;

use super::lock::{Held, Watch, lock_beside_walks, unlock};
use super::part::Part;
use super::{ALL, Place, Slot, Tree};
use crate::system::System;
use machine::{Cpus, Platform, VaRange};

/// A walk over a tree that holds one slot, and takes the next before it releases it.
///
/// An operation holds all slots of its range to its end, and locks them in the same order: so the
/// walk finds it done in all of its range, or nowhere. It may see operations on separate ranges in
/// another order than they were done.
///
/// The walk passes over empty slots without their locks, and checks them again with the next slot
/// locked: then it sees an operation on one of them, or the operation waits for a slot that the
/// walk holds, or the walk has passed all of its slots.
///
/// Walks that only read a slot *share* it. The first is counted in the slot under its lock, and
/// then releases the lock; others come under the lock, or without it while the count is not 0. An
/// operation that locks the slot to change it closes the count and waits until the last of them has
/// gone on; no new one comes meanwhile. So either one lock holder or walk has the slot alone, or
/// all only read it.
pub(crate) struct Coupled<'a, S: System> {
    tree: &'a Tree<S>,
    held: Option<(Place<'a, S>, Hold<S::Machine>)>,
    next: usize,
}

/// How a walk holds a slot.
enum Hold<M: Platform> {
    /// By its lock.
    Alone(Held<M>),
    /// With other walks.
    Shared,
}

impl<S: System> Tree<S> {
    /// A walk over all addresses.
    pub(crate) fn walk(&self) -> Coupled<'_, S> {
        Coupled {
            tree: self,
            held: None,
            next: ALL.start,
        }
    }
}

/// The number of looks at a locked slot before a walk waits for its lock.
const LOOKS: u32 = 30;
/// The last address.
const LAST: usize = ALL.end - 1;

impl<'a, S: System> Coupled<'a, S> {
    /// Locks the next slot that is not empty, or the last. `None` at the end.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Part<'_, S>> {
        self.next_with(|| LAST, |_| false)
    }

    /// Locks the next slot that is not empty, or the last; a slot that covers the address `wanted`
    /// is not passed over if it is empty. A task that moves that address has locked the slots of
    /// the old and the new one, and those in between. If the walk only reads the slot (`read`), it
    /// may share it with other walks.
    #[track_caller]
    pub(crate) fn next_with(
        &mut self,
        wanted: impl Fn() -> usize,
        read: impl Fn(&Part<'_, S>) -> bool,
    ) -> Option<Part<'_, S>> {
        if self.next >= ALL.end {
            self.release(None);
            return None;
        }
        // An address that the walk has passed stays behind it.
        let from = self.next;
        let wanted = || Some(wanted()).filter(|&address| address >= from);
        let (place, hold) = loop {
            let stop = wanted().unwrap_or(LAST);
            let place = self.occupied(stop);
            let place = place.unwrap_or_else(|| self.tree.find(stop));
            if let Some(hold) = self.hold(place, &wanted, &read) {
                break (place, hold);
            }
        };
        debug_assert!(
            place.range.start >= from,
            "a walk visits {:?} again",
            place.range
        );
        self.release(Some((place, hold)));
        self.next = place.range.end;
        Some(Part::new(place, place.range))
    }

    /// Holds `place`, unless it is no longer the next to be visited.
    #[track_caller]
    fn hold(
        &self,
        place: Place<'a, S>,
        wanted: &impl Fn() -> Option<usize>,
        read: &impl Fn(&Part<'_, S>) -> bool,
    ) -> Option<Hold<S::Machine>> {
        let slot = place.slot;
        // The address first: with this slot held, it may come before it only from behind the walk.
        let is_next = || {
            let is_before = |address| address < place.range.start;
            !wanted().is_some_and(is_before)
                && self.occupied(place.range.start).is_none()
                && slot.child().is_none()
        };
        let is_read = || read(&Part::new(place, place.range));
        if join_others(slot) {
            if is_next() && is_read() {
                return Some(Hold::Shared);
            }
            slot.leave();
        }
        // Observers see the first slot only.
        let watch = match self.held {
            None => Watch::Watched,
            Some(_) => Watch::Unwatched,
        };
        let held = lock_beside_walks(slot, watch);
        if !is_next() {
            // It was subdivided meanwhile, or something was mapped before it.
            unlock(slot, held);
            return None;
        }
        if is_read() && slot.join() {
            unlock(slot, held);
            return Some(Hold::Shared);
        }
        slot.wait_for_walks();
        Some(Hold::Alone(held))
    }

    /// The next slot before `end` that is not empty.
    fn occupied(&self, end: usize) -> Option<Place<'a, S>> {
        let range = VaRange {
            start: self.next,
            end,
        };
        self.tree.occupied(range).next()
    }

    /// Releases the held slot and holds `next`.
    fn release(&mut self, next: Option<(Place<'a, S>, Hold<S::Machine>)>) {
        match core::mem::replace(&mut self.held, next) {
            Some((place, Hold::Alone(held))) => unlock(place.slot, held),
            Some((place, Hold::Shared)) => place.slot.leave(),
            None => {}
        }
    }
}

impl<S: System> Drop for Coupled<'_, S> {
    fn drop(&mut self) {
        self.release(None);
    }
}

/// Shares `slot` with other walks, if there are some, and returns true if it does. If the lock is
/// held, perhaps by a walk that will share the slot, this waits a moment.
fn join_others<S: System>(slot: &Slot<S>) -> bool {
    for round in 0..LOOKS {
        if slot.join_others() {
            return true;
        }
        if !slot.is_locked() {
            break;
        }
        S::Machine::relax(round);
    }
    false
}

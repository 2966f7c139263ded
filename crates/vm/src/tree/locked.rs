//! Slots that are held.

use super::lock::{Held, Lock, Watch, lock, unlock};
use super::part::Part;
use super::parts::Parts;
use super::{ALL, Place, Tree, shift};
use crate::error::Error;
use crate::system::System;
use machine::VaRange;

/// Implemented by types whose holder has at least one slot locked.
pub(crate) trait Holding {}

impl<S: System> Holding for Locked<'_, S> {}
impl<S: System> Holding for Two<'_, S> {}
impl<S: System> Holding for Part<'_, S> {}

/// A range of addresses, locked: no other task changes the mappings there.
///
/// The slots themselves record that they are held. Held slots get no nodes, so a walk finds the
/// same slots again, to act on them and to release them. Observers see only the lock of the first
/// slot.
pub(crate) struct Locked<'a, S: System> {
    tree: &'a Tree<S>,
    /// The range held so far; ends where a slot does, or where the request does.
    range: VaRange,
    /// The slot at the range's start.
    first: Option<(Place<'a, S>, Held<S::Machine>)>,
}

/// Two ranges, locked.
pub(crate) struct Two<'a, S: System>(Locked<'a, S>, Option<Locked<'a, S>>);

impl<'a, S: System> From<Locked<'a, S>> for Two<'a, S> {
    fn from(one: Locked<'a, S>) -> Self {
        Two(one, None)
    }
}

impl<S: System> Tree<S> {
    /// Locks two ranges, as one if a slot overlaps both. (A range that was chosen while the other
    /// was free may overlap it.)
    #[track_caller]
    pub(crate) fn lock_two(&self, one: VaRange, other: VaRange) -> Result<Two<'_, S>, Error> {
        let (low, high) = if one.start < other.start {
            (one, other)
        } else {
            (other, one)
        };
        debug_assert!(
            one.start < one.end && other.start < other.end,
            "nothing is to be locked"
        );
        let meet = (low.end - 1) >> shift(0) >= high.start >> shift(0);
        if meet {
            let hull = VaRange {
                start: low.start,
                end: low.end.max(high.end),
            };
            return Ok(Two(self.over(hull).lock()?, None));
        }
        let low = self.over(low).lock()?;
        let high = self.over(high).more().lock()?;
        Ok(Two(low, Some(high)))
    }

    /// The whole slot that covers `address`, which the caller has locked.
    pub(crate) fn held(&self, address: usize) -> Part<'_, S> {
        let place = self.find(address);
        debug_assert_eq!(place.level, 0, "only small slots have pages");
        Part::new(place, place.range)
    }
}

impl<'a, S: System> Two<'a, S> {
    /// The parts of `range`, which lies in one of the two ranges. The caller does not use the same
    /// part twice at the same time.
    #[inline]
    pub(crate) fn parts_of(&self, range: VaRange) -> Parts<'_, S> {
        let Two(one, other) = self;
        debug_assert!(
            one.has(range) || other.as_ref().is_some_and(|other| other.has(range)),
            "{range:?} is not locked"
        );
        let tree = one.tree;
        Parts::from(tree, tree.find(range.start), range)
    }
}

impl<'a, S: System> Locked<'a, S> {
    /// Nothing, to be locked in place: it is larger than what a call returns in registers.
    #[inline]
    pub(crate) fn none(tree: &'a Tree<S>) -> Self {
        let nowhere = VaRange::sized(ALL.start, 0);
        Locked {
            tree,
            range: nowhere,
            first: None,
        }
    }

    /// `range`, which lies in `place`, whose lock is held.
    pub(super) fn one(
        tree: &'a Tree<S>,
        place: Place<'a, S>,
        range: VaRange,
        held: Held<S::Machine>,
    ) -> Self {
        Locked {
            tree,
            range,
            first: Some((place, held)),
        }
    }

    /// Locks slots where nothing is locked yet. After an error it must be dropped.
    ///
    /// Most ranges lie in one slot that need not be subdivided.
    #[track_caller]
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn lock(&mut self, wanted: Lock<'a, S>) -> Result<(), Error> {
        let Lock { place, range, .. } = wanted;
        debug_assert!(self.first.is_none(), "something is locked already");
        let held = lock(place.slot, wanted.watch);
        let is_small = place.level == 0 && range.end <= place.range.end;
        if is_small || range == place.range && place.slot.child().is_none() {
            (self.range, self.first) = (range, Some((place, held)));
            return Ok(());
        }
        self.lock_several(place, held, range, wanted.watch)
    }

    /// Locks `range`, which may cover several slots; the caller has locked the one at `place`, at
    /// its start.
    #[track_caller]
    #[inline(never)]
    fn lock_several(
        &mut self,
        place: Place<'a, S>,
        held: Held<S::Machine>,
        range: VaRange,
        watch: Watch,
    ) -> Result<(), Error> {
        let VaRange { start, end } = range;
        self.range = VaRange { start, end: start };
        let mut is_begun = self.keep(place, held, range)?;
        while !is_begun {
            let place = self.tree.find(start);
            is_begun = self.keep(place, lock(place.slot, watch), range)?;
        }
        if self.range.end < end {
            self.extend_over(range)
        } else {
            Ok(())
        }
    }

    /// The held slots, in order, each with the part of the range in it.
    #[inline]
    pub(crate) fn parts(&mut self) -> Parts<'_, S> {
        let first = self.first.as_ref().map(|(place, _)| *place);
        Parts {
            tree: self.tree,
            range: self.range,
            end_of_first: first.map_or(self.range.end, |first| first.range.end),
            first,
            rest: None,
        }
    }

    /// The parts of `range`, which lies in the locked range.
    pub(crate) fn parts_of(&mut self, range: VaRange) -> Parts<'_, S> {
        debug_assert!(self.has(range), "{range:?} is not locked");
        let first = self.first.as_ref().map(|(place, _)| *place);
        let first = first.filter(|first| range.start < first.range.end);
        let first = first.unwrap_or_else(|| self.tree.find(range.start));
        Parts::from(self.tree, first, range)
    }

    /// The part of `range`, which lies in the locked range, if one slot has all of it and is the
    /// first. For short paths.
    #[inline]
    pub(crate) fn only(&mut self, range: VaRange) -> Option<Part<'_, S>> {
        debug_assert!(self.has(range), "{range:?} is not locked");
        let (first, _) = self.first.as_ref()?;
        (range.end <= first.range.end).then(|| Part::beginning(*first, range))
    }

    /// Returns true if `test` does for a part of the range. A range in one slot takes no walk.
    #[inline]
    pub(crate) fn any(&mut self, test: impl Fn(&Part<'_, S>) -> bool) -> bool {
        match self.only(self.range) {
            Some(part) => test(&part),
            None => self.parts().any(|part| test(&part)),
        }
    }

    /// The range.
    #[inline]
    pub(crate) fn range(&self) -> VaRange {
        self.range
    }

    /// Returns true if all of `range` is locked.
    fn has(&self, range: VaRange) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Returns true if this is the whole tree.
    pub(crate) fn is_all(&self) -> bool {
        self.range == ALL
    }

    /// The end of the last mapping in the range.
    pub(super) fn last_end(&mut self) -> Option<usize> {
        let mut last = None;
        for part in self.parts() {
            part.for_each(|mapped| last = Some(mapped.range.end));
        }
        last
    }

    /// Locks the slots after the first.
    #[inline(never)]
    fn extend_over(&mut self, range: VaRange) -> Result<(), Error> {
        let start = self.range.end;
        let mut places = self.tree.places(VaRange { start, ..range });
        while let Some(place) = places.next() {
            if !self.keep(place, lock(place.slot, Watch::Unwatched), range)? {
                places.back_to(self.range.end);
            }
        }
        Ok(())
    }

    /// Adds a slot that is locked, which follows those held. Returns false if it has, or gets, a
    /// node instead.
    #[inline]
    fn keep(
        &mut self,
        place: Place<'a, S>,
        held: Held<S::Machine>,
        range: VaRange,
    ) -> Result<bool, Error> {
        debug_assert!(
            place.range.contains(self.range.end),
            "slots are locked in order, and none is left out"
        );
        if place.slot.child().is_some() {
            // It was subdivided meanwhile.
            unlock(place.slot, held);
            return Ok(false);
        }
        if place.level > 0 && !is_covered(place.range, range) {
            let subdivided = place.slot.subdivide(place.range);
            unlock(place.slot, held);
            return subdivided.map(|()| false);
        }
        self.range.end = place.range.end.min(range.end);
        if self.first.is_none() {
            self.first = Some((place, held));
        }
        Ok(true)
    }
}

impl<S: System> Drop for Locked<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if let Some((first, held)) = &mut self.first {
            unlock(first.slot, held.take());
            if first.range.end < self.range.end {
                let start = first.range.end;
                unlock_all(
                    self.tree,
                    VaRange {
                        start,
                        ..self.range
                    },
                );
            }
        }
    }
}

/// Releases the slots of `range`, which were locked after the first.
#[inline(never)]
fn unlock_all<S: System>(tree: &Tree<S>, range: VaRange) {
    tree.places(range)
        .for_each(|place| unlock(place.slot, None));
}

/// Returns true if `range` covers all of `slot`.
fn is_covered(slot: VaRange, range: VaRange) -> bool {
    range.start <= slot.start && slot.end <= range.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::best::Best;
    use hosted::Hosted;

    #[test]
    fn a_range_within_the_other_does_not_end_it() {
        const MIB: usize = 1 << 20;
        Hosted::new(1).on_cpu(0, || {
            let tree = Tree::<Best<Hosted>>::new();
            let (long, short) = (
                VaRange::sized(4 * MIB, 8 * MIB),
                VaRange::sized(6 * MIB, MIB),
            );
            for (one, other) in [(long, short), (short, long)] {
                let two = tree.lock_two(one, other).expect("memory");
                let mut slots = (long.start..long.end).step_by(2 * MIB);
                assert!(slots.all(|at| tree.find(at).slot.is_locked()));
                drop(two);
            }
        });
    }
}

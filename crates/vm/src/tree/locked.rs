//! Locking a range.

use super::extent::Mapped;
use super::part::Part;
use super::places::Places;
use super::{ALL, Place, Slot, Tree, shift};
use crate::error::Error;
use crate::lock::SlotLock;
use crate::system::System;
use core::convert::Infallible;
use core::iter;
use machine::VaRange;
use sync::RawLock;

/// The token that the holder of a slot's lock gives back; `None` if it was taken unwatched.
pub(super) type Held<M> = Option<<SlotLock<M> as RawLock<M>>::Held>;

/// Its holder has a slot locked, at least.
pub(crate) trait Holding {}

impl<S: System> Holding for Locked<'_, S> {}
impl<S: System> Holding for Two<'_, S> {}
impl<S: System> Holding for Part<'_, S> {}

/// A range of addresses, locked: no other task changes the mappings there.
///
/// The slots themselves remember that they are held: while they are they get no nodes,
/// so a walk finds the same slots again, to act on them and to release them. Observers
/// see the lock of the first slot, which stands for all.
pub(crate) struct Locked<'a, S: System> {
    tree: &'a Tree<S>,
    /// The range held so far; ends where a slot does, or where the request does.
    range: VaRange,
    /// The slot at the range's start.
    first: Option<(Place<'a, S>, Held<S::Machine>)>,
}

/// Two ranges, locked.
pub(crate) struct Two<'a, S: System>(
    #[expect(dead_code, reason = "held")] Locked<'a, S>,
    #[expect(dead_code, reason = "held")] Option<Locked<'a, S>>,
);

impl<'a, S: System> From<Locked<'a, S>> for Two<'a, S> {
    fn from(one: Locked<'a, S>) -> Self {
        Two(one, None)
    }
}

impl<S: System> Tree<S> {
    /// Locks `range`, which is not empty and in [`ALL`].
    ///
    /// An error (no memory for a node) leaves nothing locked and nothing changed.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn lock(&self, range: VaRange) -> Result<Locked<'_, S>, Error> {
        self.lock_from(self.find(range.start), range, true)
    }

    /// Locks a range whose start lies in `place`.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn lock_at<'a>(
        &'a self,
        place: Place<'a, S>,
        range: VaRange,
    ) -> Result<Locked<'a, S>, Error> {
        self.lock_from(place, range, true)
    }

    #[track_caller]
    #[inline(always)]
    fn lock_from<'a>(
        &'a self,
        place: Place<'a, S>,
        range: VaRange,
        watched: bool,
    ) -> Result<Locked<'a, S>, Error> {
        let mut locked = Locked::none(self);
        locked.lock_from(place, range, watched)?;
        Ok(locked)
    }

    /// Locks two ranges that do not overlap, as one if a slot has something of both.
    #[track_caller]
    pub(crate) fn lock_two(&self, one: VaRange, other: VaRange) -> Result<Two<'_, S>, Error> {
        let (low, high) = if one.start < other.start {
            (one, other)
        } else {
            (other, one)
        };
        let meet = (low.end - 1) >> shift(0) >= high.start >> shift(0);
        if meet {
            let hull = VaRange {
                start: low.start,
                end: high.end,
            };
            return Ok(Two(self.lock(hull)?, None));
        }
        let low = self.lock(low)?;
        let high = self.lock_more(high)?;
        Ok(Two(low, Some(high)))
    }

    /// Locks a range while the caller holds slots already: of lower addresses, or of a space of
    /// which no task waits for a slot that holds one of this.
    pub(crate) fn lock_more(&self, range: VaRange) -> Result<Locked<'_, S>, Error> {
        self.lock_from(self.find(range.start), range, false)
    }

    /// The slots that `range` reaches into and that are held, each with the range's part of it.
    /// No two of them are to be used at once if they are the same.
    pub(crate) fn parts_of<'a>(
        &'a self,
        _held: &Two<'a, S>,
        range: VaRange,
    ) -> impl Iterator<Item = Part<'a, S>> + use<'a, S> {
        // One or two: each by a descent of its own.
        let mut at = range.start;
        iter::from_fn(move || {
            (at < range.end).then(|| {
                let place = self.find(at);
                at = place.range.end;
                Part::new(place, range)
            })
        })
    }

    /// All of the slot that covers `address`, which the caller has locked.
    pub(crate) fn held(&self, address: usize) -> Part<'_, S> {
        let place = self.find(address);
        Part::new(place, place.range)
    }

    /// Locks all addresses. That needs no memory.
    #[track_caller]
    pub(crate) fn lock_all(&self) -> Locked<'_, S> {
        let locked = self.lock(ALL);
        locked.unwrap_or_else(|_| unreachable!("slots that are covered are not subdivided"))
    }

    /// Locks the part of `range` that lies in `place`, which is of level 0.
    #[track_caller]
    #[inline]
    pub(crate) fn lock_small<'a>(&'a self, place: Place<'a, S>, range: VaRange) -> Locked<'a, S> {
        debug_assert_eq!(place.level, 0);
        let locked = self.lock_at(place, range.common(place.range));
        locked.unwrap_or_else(|_| unreachable!("slots of level 0 are not subdivided"))
    }

    /// Locks the slot that covers the address, if that needs no waiting; unobserved, for a look
    /// beside other slots' locks.
    pub(crate) fn try_around(&self, address: usize) -> Option<Locked<'_, S>> {
        let place = self.find(address);
        place.slot.lock.raw().try_lock()?;
        if place.slot.child().is_some() || place.slot.is_shared() {
            // It was subdivided meanwhile, or would need waiting.
            unlock(place.slot, None);
            return None;
        }
        Some(Locked {
            tree: self,
            range: place.range,
            first: Some((place, None)),
        })
    }

    /// Locks the slot that covers `address`, of whatever level. That needs no memory.
    #[track_caller]
    pub(crate) fn lock_around(&self, address: usize) -> Locked<'_, S> {
        let place = self.find(address);
        let locked = self.lock_at(place, place.range);
        locked.unwrap_or_else(|_| unreachable!("slots that are covered are not subdivided"))
    }
}

impl<'a, S: System> Locked<'a, S> {
    /// Nothing, to be locked in place: it is larger than what a call returns in registers.
    #[inline(always)]
    pub(crate) fn none(tree: &'a Tree<S>) -> Self {
        let nowhere = VaRange::sized(ALL.start, 0);
        Locked {
            tree,
            range: nowhere,
            first: None,
        }
    }

    /// Locks a range whose start lies in `place`, where nothing is locked yet. After an error it
    /// must be dropped.
    #[track_caller]
    #[inline(always)]
    pub(crate) fn lock_at(&mut self, place: Place<'a, S>, range: VaRange) -> Result<(), Error> {
        self.lock_from(place, range, true)
    }

    /// Most ranges lie in one slot that need not be subdivided.
    #[track_caller]
    #[inline(always)]
    fn lock_from(
        &mut self,
        place: Place<'a, S>,
        range: VaRange,
        watched: bool,
    ) -> Result<(), Error> {
        let held = lock(place.slot, watched);
        let is_small = place.level == 0 && range.end <= place.range.end;
        if is_small || range == place.range && place.slot.child().is_none() {
            (self.range, self.first) = (range, Some((place, held)));
            return Ok(());
        }
        self.lock_several(place, held, range, watched)
    }

    /// Locks `range`, at whose start `place` is locked.
    #[track_caller]
    #[inline(never)]
    fn lock_several(
        &mut self,
        place: Place<'a, S>,
        held: Held<S::Machine>,
        range: VaRange,
        watched: bool,
    ) -> Result<(), Error> {
        let VaRange { start, .. } = range;
        self.range = VaRange { start, end: start };
        let mut is_begun = self.keep(place, held, range)?;
        while !is_begun {
            is_begun = self.extend(self.tree.find(start), range, watched)?;
        }
        if self.range.end < range.end {
            self.extend_over(range)
        } else {
            Ok(())
        }
    }

    /// Locks the slot of level 0 that covers `page`, if that needs no waiting.
    #[track_caller]
    pub(crate) fn try_slot(tree: &'a Tree<S>, slot: &'a Slot<S>, page: VaRange) -> Option<Self> {
        let held = slot.lock.try_lock()?;
        if slot.is_shared() {
            unlock(slot, Some(held));
            return None;
        }
        Some(Locked {
            tree,
            range: page,
            first: Some((Place::new(slot, 0, page.start), Some(held))),
        })
    }

    /// The slots held, in order, each with the range's part of it.
    #[inline(always)]
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

    /// The first of [`Locked::parts`].
    #[inline(always)]
    pub(crate) fn first(&mut self) -> Option<Part<'_, S>> {
        let first = self.first.as_ref();
        first.map(|(place, _)| Part::beginning(*place, self.range))
    }

    /// The part of `range`, which lies in the locked range, if one slot has all of it and is the
    /// first.
    #[inline(always)]
    pub(crate) fn only(&mut self, range: VaRange) -> Option<Part<'_, S>> {
        let (first, _) = self.first.as_ref()?;
        (range.end <= first.range.end).then(|| Part::beginning(*first, range))
    }

    /// Calls `visit` with each of [`Locked::parts`]. For short paths: as most ranges have one part,
    /// the code for the first stands by itself.
    #[inline(always)]
    pub(crate) fn each(&mut self, mut visit: impl FnMut(Part<'_, S>)) {
        let Ok(()) = self.try_each(|part| {
            visit(part);
            Ok::<_, Infallible>(())
        });
    }

    /// Visits each part, up to the first error.
    #[inline(always)]
    pub(crate) fn try_each<E>(
        &mut self,
        mut visit: impl FnMut(Part<'_, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((first, _)) = &self.first else {
            return Ok(());
        };
        visit(Part::beginning(*first, self.range))?;
        if first.range.end < self.range.end {
            self.try_each_from(first.range.end, &mut visit)
        } else {
            Ok(())
        }
    }

    /// Visits each part from `start` on, up to the first error.
    #[inline(never)]
    fn try_each_from<E>(
        &self,
        start: usize,
        visit: &mut impl FnMut(Part<'_, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = VaRange {
            start,
            ..self.range
        };
        let mut places = self.tree.places(range);
        places.try_for_each(|place| visit(Part::new(place, range)))
    }

    /// Those of [`Locked::parts`] in which something is mapped.
    pub(crate) fn occupied(&mut self) -> impl Iterator<Item = Part<'_, S>> {
        let range = self.range;
        let places = self.tree.occupied(range);
        places.map(move |place| Part::new(place, range))
    }

    /// The parts of `range`, which lies in the locked range.
    pub(crate) fn parts_in(&mut self, range: VaRange) -> impl Iterator<Item = Part<'_, S>> {
        self.tree
            .places(range)
            .map(move |place| Part::new(place, range))
    }

    /// Calls `visit` with each mapping in the range, in order, up to the first error.
    ///
    /// # Errors
    /// [`Error::NotMapped`] if part of the range is not mapped; or those of `visit`.
    #[inline]
    pub(crate) fn visit(
        &mut self,
        mut visit: impl FnMut(Mapped<'_, S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.try_each(|part| part.visit(&mut visit))
    }

    /// Calls `visit` with the slots held of which the range covers a part only: the first and the
    /// last at most, up to the first error.
    #[inline(always)]
    pub(crate) fn visit_cut(
        &mut self,
        mut visit: impl FnMut(Part<'_, S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (tree, range) = (self.tree, self.range);
        let Some((first, _)) = &self.first else {
            return Ok(());
        };
        let mut if_cut = |part: Part<'_, S>| if part.is_all() { Ok(()) } else { visit(part) };
        if_cut(Part::beginning(*first, range))?;
        if first.range.end < range.end {
            if_cut(Part::new(tree.find(range.end - 1), range))
        } else {
            Ok(())
        }
    }

    /// The range.
    #[inline]
    pub(crate) fn range(&self) -> VaRange {
        self.range
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
            if !self.extend(place, range, false)? {
                places.back_to(self.range.end);
            }
        }
        Ok(())
    }

    /// Locks `place`, which follows the slots held, as the first step or the next. `false` if it
    /// has got a node instead.
    #[track_caller]
    #[inline(always)]
    fn extend(
        &mut self,
        place: Place<'a, S>,
        range: VaRange,
        watched: bool,
    ) -> Result<bool, Error> {
        let held = lock(place.slot, watched);
        self.keep(place, held, range)
    }

    /// Adds a place that is locked.
    #[inline(always)]
    fn keep(
        &mut self,
        place: Place<'a, S>,
        held: Held<S::Machine>,
        range: VaRange,
    ) -> Result<bool, Error> {
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
    #[inline(always)]
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

/// What [`Locked::parts`] gives. Most ranges have one, so the walk to the others begins when it
/// must.
pub(crate) struct Parts<'a, S: System> {
    tree: &'a Tree<S>,
    range: VaRange,
    first: Option<Place<'a, S>>,
    end_of_first: usize,
    rest: Option<Places<'a, S>>,
}

impl<'a, S: System> Parts<'a, S> {
    #[inline(never)]
    fn next_of_rest(&mut self) -> Option<Part<'a, S>> {
        let rest = self.rest.get_or_insert_with(|| {
            let start = self.end_of_first;
            self.tree.places(VaRange {
                start,
                ..self.range
            })
        });
        rest.next().map(|place| Part::new(place, self.range))
    }
}

impl<'a, S: System> Iterator for Parts<'a, S> {
    type Item = Part<'a, S>;

    #[inline(always)]
    fn next(&mut self) -> Option<Part<'a, S>> {
        match self.first.take() {
            Some(first) => Some(Part::new(first, self.range)),
            None if self.end_of_first < self.range.end => self.next_of_rest(),
            None => None,
        }
    }
}

/// Returns true if `range` covers all of `slot`.
fn is_covered(slot: VaRange, range: VaRange) -> bool {
    range.start <= slot.start && slot.end <= range.end
}

#[inline]
#[track_caller]
pub(super) fn lock<S: System>(slot: &Slot<S>, watched: bool) -> Held<S::Machine> {
    let held = lock_beside_walks(slot, watched);
    slot.wait_for_walks();
    held
}

/// Locks the slot beside walks, which may share it: it must not change.
#[inline]
#[track_caller]
pub(super) fn lock_beside_walks<S: System>(slot: &Slot<S>, watched: bool) -> Held<S::Machine> {
    if watched {
        Some(slot.lock.lock())
    } else {
        slot.lock.raw().lock();
        None
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

//! Moving mappings to other addresses.
//!
//! A move takes one mapping, or all mappings in a range. The old and the new addresses are
//! locked together; all steps that can fail are done; then the pages and the mappings move.
//!
//! Slots above 2 MiB have no pages, and equal attributes throughout. So before anything is locked
//! the new place is subdivided as the old one is; a move that finds that another task has
//! subdivided the old one further meanwhile begins anew.

use super::gate::Guard;
use super::remap::Move;
use super::{Space, arena};
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::push;
use crate::system::{Change, System};
use crate::tree::{Attributes, Part, Two};
use crate::usage::Usage;
use alloc::vec::Vec;
use machine::{PAGE_SIZE, VaRange};

/// Flags that a mapping left behind does not keep.
const LOCKS: Flags = Flags::LOCKED.with(Flags::ON_FAULT);

/// A run of addresses with the same attributes that is to move.
pub(super) struct Run<S: System> {
    /// The old addresses.
    pub(super) from: VaRange,
    /// The new addresses; longer if the mapping grows.
    to: VaRange,
    /// The attributes; those of the new place once the run is ready.
    pub(super) attributes: Attributes<S>,
}

impl<S: System> Space<S> {
    /// Moves the mappings at `old` to `to`, which is at least as long, if that is free; the rest of
    /// `to` is new. Moves one mapping, or several if `place` allows it and the length stays.
    pub(super) fn move_to(&self, old: VaRange, to: VaRange, place: Move) -> Result<bool, Error> {
        debug_assert!(old.len() <= to.len(), "there is no room for all that moves");
        let target = VaRange::sized(to.start, old.len());
        self.divide_as(old, to)?;
        let pmap = self.pmap.lock_tables();
        let two = self.pmap.tree.lock_two(old, to)?;
        let mut runs = self.runs(&two, old, to, place)?;
        let is_ready = self.is_divided_as(old, to) && self.make_ready(&two, &mut runs)?;
        if !is_ready {
            return Ok(false);
        }
        let (before, after) = counted(&runs, place);
        // A mapping left behind is charged as the moved one was, so a move that leaves none behind
        // is charged for new pages only.
        debug_assert!(before.charged <= after.charged, "a move gives charge back");
        let more = after.charged - before.charged;
        self.vm.commit(more)?;
        let prepared = self.rules(&two).count_new(before, after).and_then(|()| {
            let prepared = self.pmap.prepare_move(&two, old, target);
            // Nothing has shrunk, so no charge that others could have taken must come back.
            prepared.inspect_err(|_| {
                let back = self.rules(&two).count(after, before);
                debug_assert!(back.is_ok(), "less is within all limits");
            })
        });
        prepared.inspect_err(|_| self.vm.uncommit(more))?;
        for run in &runs {
            self.leave_cut(&two, run);
        }
        self.pmap.move_pages(&two, old, target);
        self.move_runs(&two, &runs, place);
        drop(two);
        drop(pmap);
        let op = &mut Guard::<S>::default();
        if !place.leaves() {
            self.report(op, Change::Unmapped(old));
        }
        for run in &runs {
            self.report_like(op, run.to, &run.attributes);
        }
        if !place.leaves() {
            self.arenas.unmapped(old);
            self.trim(self.pmap.tree.find(old.start), old);
        }
        Ok(true)
    }

    /// The new places of the mappings at `old` when it moves to `to`.
    pub(super) fn goals(
        &self,
        old: VaRange,
        to: VaRange,
        place: Move,
    ) -> Result<Vec<VaRange>, Error> {
        let two = self.pmap.tree.over(old).lock()?.into();
        let runs = self.runs(&two, old, to, place)?;
        let mut goals = Vec::new();
        goals.try_reserve_exact(runs.len())?;
        goals.extend(runs.iter().map(|run| run.to));
        Ok(goals)
    }

    /// The runs of `old`, which is locked, as they move to `to`.
    fn runs(
        &self,
        two: &Two<'_, S>,
        old: VaRange,
        to: VaRange,
        place: Move,
    ) -> Result<Vec<Run<S>>, Error> {
        let several = place.takes_several() && old.len() == to.len();
        let mut runs: Vec<Run<S>> = Vec::new();
        self.each_run(two, old, |mut run| {
            run.to = VaRange::sized(run.from.start - old.start + to.start, run.from.len());
            push(&mut runs, run)
        })?;
        let address = old.start;
        debug_assert!(
            runs.is_sorted_by(|one, next| one.from.end <= next.from.start),
            "mappings out of order"
        );
        let Some(first) = runs.first_mut().filter(|run| run.from.start == address) else {
            return Err(Error::NotOne { address });
        };
        if !several {
            let address = first.from.end;
            if address < old.end {
                return Err(Error::NotOne { address });
            }
            first.to.end = to.end;
        }
        Ok(runs)
    }

    /// Calls `visit` with each run of `range`, which is locked; the runs have no new place yet.
    pub(super) fn each_run(
        &self,
        two: &Two<'_, S>,
        range: VaRange,
        mut visit: impl FnMut(Run<S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut run: Option<Run<S>> = None;
        two.parts_of(range).try_each(|part| {
            part.try_for_each(|mapped| {
                let attributes = mapped.attributes();
                match &mut run {
                    Some(run)
                        if run.from.end == mapped.range.start
                            && run.attributes.go_on_in(&attributes) =>
                    {
                        run.from.end = mapped.range.end;
                        Ok(())
                    }
                    _ => {
                        let next = Run {
                            from: mapped.range,
                            to: mapped.range,
                            attributes,
                        };
                        run.replace(next).map_or(Ok(()), &mut visit)
                    }
                }
            })
        })?;
        run.map_or(Ok(()), visit)
    }

    /// Gets all that is needed to map `runs` where they go, and to unmap them where they are.
    /// Returns false if something is mapped where they go, or that is not subdivided as it must be.
    fn make_ready(&self, two: &Two<'_, S>, runs: &mut [Run<S>]) -> Result<bool, Error> {
        let (mut last, mut changes, mut is_ready) = (None, 0, true);
        for run in runs {
            // Runs may follow each other in a slot.
            changes = if last == Some(run.to.start / arena::TABLE) {
                changes + 1
            } else {
                1
            };
            last = Some((run.to.end - 1) / arena::TABLE);
            is_ready &= two.parts_of(run.to).all(|part| part.is_divisible());
            is_ready &= Part::make_room_if_all_free(two.parts_of(run.to), changes)?;
            // Extents that are taken out, or changed, are split at the ends of the whole only.
            two.parts_of(run.from).try_for_each(|mut part| {
                part.make_room()?;
                self.pmap.own_used(&mut part)
            })?;
            run.attributes = self.moved(&run.attributes, run.from.start, run.to)?;
        }
        Ok(is_ready)
    }

    /// Drops the private copies of `run` behind the end of its object: a truncation under way may
    /// have searched their new place before.
    fn leave_cut(&self, two: &Two<'_, S>, run: &Run<S>) {
        let Some(attached) = &run.attributes.attachment else {
            return;
        };
        if !run.attributes.flags.has(Flags::SHARED) {
            let kept = attached.reached(VaRange::sized(run.to.start, run.from.len()));
            let start = run.from.start + kept.len();
            let end = run.from.end;
            // The pages behind the run may be another task's.
            if start < end {
                self.pmap.drop_copies(two, VaRange { start, end });
            }
        }
    }

    /// Sets the mappings of `runs` at their new places, and clears the old ones, or leaves them
    /// without pages.
    fn move_runs(&self, two: &Two<'_, S>, runs: &[Run<S>], place: Move) {
        for run in runs {
            debug_assert!(
                run.attributes
                    .attachment
                    .as_ref()
                    .is_none_or(|at| at.range() == run.to),
                "an object knows another place of its mapping"
            );
            for mut part in two.parts_of(run.to) {
                part.set(Some(run.attributes.clone()));
            }
            for mut part in two.parts_of(run.from) {
                if place.leaves() {
                    part.update(|_, left| left.flags = left.flags.without(LOCKS))
                } else {
                    part.set(None)
                }
            }
        }
    }

    /// Subdivides `to` as `from` is. No slot is locked.
    fn divide_as(&self, from: VaRange, to: VaRange) -> Result<(), Error> {
        self.small_places(from, to).try_for_each(|at| {
            let page = VaRange::sized(at, PAGE_SIZE);
            match self.pmap.tree.find(at).level {
                0 => Ok(()),
                _ => self.pmap.tree.over(page).lock().map(drop),
            }
        })
    }

    /// Returns true if `to` is subdivided where `from` is.
    fn is_divided_as(&self, from: VaRange, to: VaRange) -> bool {
        let mut places = self.small_places(from, to);
        places.all(|at| self.pmap.tree.find(at).level == 0)
    }

    /// A page in each 2 MiB of `to` to which memory moves from 2 MiB of `from` that have a slot of
    /// their own.
    fn small_places(&self, from: VaRange, to: VaRange) -> impl Iterator<Item = usize> {
        let small = self.pmap.tree.places(from).filter(|place| place.level == 0);
        small.flat_map(move |place| {
            let here = place.range.common(from);
            let ends = [here.start, here.end - PAGE_SIZE];
            ends.map(|at| at - from.start + to.start)
        })
    }
}

/// The usage of `runs` before the move and after it, with that of mappings left behind.
fn counted<S: System>(runs: &[Run<S>], place: Move) -> (Usage, Usage) {
    let (mut before, mut after) = (Usage::NONE, Usage::NONE);
    for run in runs {
        let flags = run.attributes.flags;
        before += Usage::of(flags, run.from.pages());
        after += Usage::of(flags, run.to.pages());
        if place.leaves() {
            after += Usage::of(flags.without(LOCKS), run.from.pages());
        }
    }
    (before, after)
}

//! Changes of a mapping's size or place (`mremap`).

use super::gate::Guard;
use super::{HIGHEST, LOWEST, Space, whole_pages};
use crate::error::Error;
use crate::flags::Flags;
use crate::system::{Op, System};
use crate::tree::{Attributes, Part, Two};
use crate::usage::Usage;
use alloc::sync::Arc;
use core::ptr;
use machine::{PAGE_SIZE, VaRange};

/// The place to which a mapping may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Nowhere: it changes its size in place, or the call fails.
    Never,
    /// Elsewhere, if it cannot stay (`MREMAP_MAYMOVE`).
    IfNeeded,
    /// Here, and replaces whatever is mapped there (`MREMAP_FIXED`).
    To(usize),
    /// Elsewhere, and leaves an empty mapping behind (`MREMAP_DONTUNMAP`).
    Leaving,
    /// Here, and leaves an empty mapping behind.
    LeavingTo(usize),
}

/// The ranges locked for a remapping, and the mapping's attributes.
type One<'a, S> = (Two<'a, S>, Attributes<S>);

impl Move {
    pub(crate) fn leaves(self) -> bool {
        matches!(self, Move::Leaving | Move::LeavingTo(_))
    }

    /// Returns true if a range that keeps its length may have several mappings.
    pub(super) fn takes_several(self) -> bool {
        matches!(self, Move::To(_) | Move::LeavingTo(_))
    }
}

impl<S: System> Space<S> {
    /// Makes the mapping at `old` (its end rounded up to pages) `bytes` long, and returns its new
    /// address. Its pages keep their content; added pages are as in a new mapping. When it returns,
    /// no CPU reaches moved pages at their old addresses.
    ///
    /// A range that moves to a given place and keeps its length may have several mappings, with
    /// gaps between: mappings in the gaps' new places stay. The part cut off may have any mappings.
    /// An empty `old` asks for another mapping of the shared memory at its start.
    ///
    /// # Errors
    /// [`Error::NotOne`] if nothing is mapped at the start of `old`, or a range that must be one
    /// mapping is not; [`Error::NoAddresses`] if there is no room, or none in place. Then nothing
    /// has changed, except that a place given by [`Move::To`] may have been cleared, and the part
    /// cut off may have been unmapped (as on Linux).
    pub fn remap(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        let bytes = match whole_pages(bytes) {
            Some(0) | None => return invalid("the new length is zero or too large"),
            Some(bytes) => bytes,
        };
        if !old.start.is_multiple_of(PAGE_SIZE) || old.end < old.start {
            return invalid("the address is not page-aligned, or the length wraps around");
        }
        let end = whole_pages(old.end);
        // For an empty range this means: the new place has the old one in its midst.
        if let Move::To(at) | Move::LeavingTo(at) = place
            && end.is_some_and(|end| at < end)
            && old.start < at.saturating_add(bytes)
        {
            return invalid("the old and the new place overlap");
        }
        // Nothing is mapped where no task may map.
        if !(LOWEST..HIGHEST).contains(&old.start) {
            return Err(Error::NotOne { address: old.start });
        }
        let end = end.unwrap_or(usize::MAX);
        let old = VaRange { end, ..old };
        if place.leaves() && bytes != old.len() {
            return invalid("a move that leaves its mapping must keep the length");
        }
        let moved = self.cut_before_move(old, bytes, place)?;
        let at = self.vm.with_frames(|| {
            let _op = self.begin(Op::Change);
            if old.end > HIGHEST {
                self.refuse_beyond(old, bytes, place)
            } else if old.start == old.end {
                self.duplicate(old.start, bytes, place)
            } else {
                self.remap_whole(moved, bytes, place)
            }
        })?;
        if bytes > old.len() {
            self.populate_locked(VaRange {
                start: at + old.len(),
                end: at + bytes,
            });
        }
        Ok(at)
    }

    /// Cuts the range to be moved to its new length first: after the move nothing may fail any
    /// more. Returns the range that is left to move.
    fn cut_before_move(&self, old: VaRange, bytes: usize, place: Move) -> Result<VaRange, Error> {
        match place {
            Move::To(at) if bytes < old.len() && old.end <= HIGHEST => {
                Self::in_pages_at(at, bytes)?;
                let kept = VaRange::sized(old.start, bytes);
                let _op = self.begin(Op::Change);
                drop(self.lock_one(kept, None)?);
                self.shrink(old, bytes)?;
                Ok(kept)
            }
            _ => Ok(old),
        }
    }

    /// The error for `old`, which ends where nothing can be mapped.
    fn refuse_beyond(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        drop(self.lock_one(VaRange::sized(old.start, PAGE_SIZE), None)?);
        match place {
            Move::Never | Move::IfNeeded if bytes <= old.len() => {
                let reason = "the part to be cut off ends where nothing can be mapped";
                Err(Error::Invalid { reason })
            }
            _ => Err(Error::NotOne { address: HIGHEST }),
        }
    }

    fn remap_whole(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        match place {
            Move::To(at) | Move::LeavingTo(at) => self.remap_to(old, at, bytes, place),
            Move::Leaving => {
                drop(self.lock_one(old, None)?);
                self.remap_elsewhere(old, bytes, place)
            }
            Move::Never | Move::IfNeeded if bytes <= old.len() => {
                self.shrink(old, bytes)?;
                Ok(old.start)
            }
            Move::Never | Move::IfNeeded => {
                if self.grow_in_place(old, bytes)? {
                    return Ok(old.start);
                }
                if place == Move::Never {
                    return Err(Error::NoAddresses { bytes });
                }
                self.remap_elsewhere(old, bytes, place)
            }
        }
    }

    /// Unmaps the part of `old` beyond `bytes`, if something is mapped at its start.
    fn shrink(&self, old: VaRange, bytes: usize) -> Result<(), Error> {
        drop(self.lock_one(VaRange::sized(old.start, PAGE_SIZE), None)?);
        let rest = VaRange {
            start: old.start + bytes,
            end: old.end,
        };
        if rest.start < rest.end {
            let place = self.pmap.tree.find(rest.start);
            self.give_back(place, rest, &mut Guard::<S>::default())?;
        }
        Ok(())
    }

    /// Makes `old` `bytes` long if there is room behind it. Returns true if it did.
    fn grow_in_place(&self, old: VaRange, bytes: usize) -> Result<bool, Error> {
        let Ok(whole) = Self::in_pages_at(old.start, bytes) else {
            // A range that is not one mapping cannot grow anywhere.
            return self.lock_one(old, None).map(|_| false);
        };
        let more = VaRange {
            start: old.end,
            end: whole.end,
        };
        let (two, attributes) = self.lock_one(old, Some(more))?;
        if !Part::make_room_if_all_free(two.parts_of(more), 1)? {
            return Ok(false);
        }
        // The attachment covers the old range only: the object must find the added pages, too.
        let added = self.moved(&attributes, old.end, more)?;
        self.charging(more.len(), attributes.flags, || {
            let grown = Usage::of(attributes.flags, more.pages());
            self.rules(&two).count_new(Usage::NONE, grown)
        })?;
        let parts = two.parts_of(more);
        parts.each(|mut part| part.set(Some(added.clone())));
        drop(two);
        self.report_like(&mut Guard::<S>::default(), more, &added);
        Ok(true)
    }

    /// Moves `old` to where there is room for `bytes`.
    fn remap_elsewhere(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        self.place(bytes, &mut |_, to| self.move_to(old, to, place))
    }

    /// Moves `old` to `at`, and replaces whatever is mapped there.
    fn remap_to(&self, old: VaRange, at: usize, bytes: usize, place: Move) -> Result<usize, Error> {
        let to = Self::in_pages_at(at, bytes)?;
        loop {
            for goal in self.goals(old, to, place)? {
                let place = self.pmap.tree.find(goal.start);
                self.clear(place, goal, &mut Guard::<S>::default())?;
            }
            // Another task may map something there before it is locked again.
            if self.move_to(old, to, place)? {
                return Ok(at);
            }
        }
    }

    /// The attributes that the mapping at `old` will have at `to`.
    pub(super) fn moved(
        &self,
        attributes: &Attributes<S>,
        old: usize,
        to: VaRange,
    ) -> Result<Attributes<S>, Error> {
        if attributes.flags.has(Flags::GROWS_DOWN) {
            self.written.limits.expect_stacks(to.end);
        }
        debug_assert!(
            attributes
                .attachment
                .as_ref()
                .is_none_or(|at| ptr::eq(at.owner(), Arc::as_ptr(&self.pmap).cast())),
            "another space's mapping moves"
        );
        let attachment = attributes.attachment.as_ref();
        let moved = attachment.map(|at| at.object().reattach(at.owner(), to, at.index(old)));
        Ok(Attributes {
            flags: attributes.flags,
            attachment: moved.transpose()?,
        })
    }

    /// Locks `old`, which must be mapped with the same attributes everywhere, and `more`.
    pub(super) fn lock_one(
        &self,
        old: VaRange,
        more: Option<VaRange>,
    ) -> Result<One<'_, S>, Error> {
        debug_assert!(old.start < old.end, "no mapping is empty");
        let tree = &self.pmap.tree;
        let two = match more {
            Some(more) => tree.lock_two(old, more)?,
            None => tree.over(old).lock()?.into(),
        };
        let (mut end, mut found) = (old.start, None);
        self.each_run(&two, old, |run| {
            if run.from.start == old.start {
                (end, found) = (run.from.end, Some(run.attributes));
            }
            Ok(())
        })?;
        match found {
            Some(attributes) if end == old.end => Ok((two, attributes)),
            _ => Err(Error::NotOne { address: end }),
        }
    }

    /// Pages in `range` if the mapping that begins there is locked in memory.
    pub(super) fn populate_locked(&self, range: VaRange) {
        let first = VaRange::sized(range.start, PAGE_SIZE);
        let Ok(mut locked) = self.pmap.tree.over(first).lock() else {
            return;
        };
        let flags = locked
            .parts()
            .next()
            .and_then(|part| Some(part.first()?.flags));
        drop(locked);
        if flags.is_some_and(Flags::is_brought) {
            self.populate(range);
        }
    }
}

//! Changing the size or the place of a mapping (`mremap`).

use super::{HIGHEST, Space, whole_pages};
use crate::error::Error;
use crate::policy::{MapLocking, Policies};
use crate::tree::{Attributes, Flags, Part, Two, Usage};
use machine::{PAGE_SIZE, Platform, VaRange};

/// Where a mapping may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Nowhere: it changes its size in place, or nothing happens.
    Never,
    /// Elsewhere, if it can not stay (`MREMAP_MAYMOVE`).
    IfNeeded,
    /// Here, in the place of whatever is there (`MREMAP_FIXED`).
    To(usize),
    /// Elsewhere, and leaves an empty mapping behind (`MREMAP_DONTUNMAP`).
    Leaving,
    /// Here, and leaves an empty mapping behind.
    LeavingTo(usize),
}

/// What is locked to be remapped, and what the mapping has.
type One<'a, M, P> = (Two<'a, M, P>, Attributes<M, P>);

impl Move {
    fn leaves(self) -> bool {
        matches!(self, Move::Leaving | Move::LeavingTo(_))
    }
}

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Makes the mapping at `old` (its end rounded up to pages) `bytes` long, and returns
    /// where it is then. Its pages keep their content; what is new is as a new mapping's.
    /// When it returns, no CPU reaches the pages where they were.
    ///
    /// # Errors
    /// [`Error::NotOne`] if `old` is not mapped, or with several attributes;
    /// [`Error::NoAddresses`] if there is no room, or none in place. Then nothing has changed, but
    /// that a place given by [`Move::To`] may have been cleared.
    pub fn remap(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        // What no task may map is not mapped.
        if old.start.is_multiple_of(PAGE_SIZE) && old.start < old.end && old.end > HIGHEST {
            return Err(Error::NotOne { address: old.start });
        }
        let old = Self::in_pages(old)?;
        let bytes = match whole_pages(bytes) {
            Some(0) | None => {
                let reason = "the new length is zero or too large";
                return Err(Error::Invalid { reason });
            }
            Some(bytes) => bytes,
        };
        if place.leaves() && bytes != old.len() {
            let reason = "what leaves its mapping behind must keep its length";
            return Err(Error::Invalid { reason });
        }
        let at = self.vm.with_frames(|| {
            let _write = self.pmap.locking.write();
            self.remap_whole(old, bytes, place)
        })?;
        if bytes > old.len() {
            self.populate_locked(VaRange {
                start: at + old.len(),
                end: at + bytes,
            });
        }
        Ok(at)
    }

    fn remap_whole(&self, old: VaRange, bytes: usize, place: Move) -> Result<usize, Error> {
        match place {
            Move::To(at) | Move::LeavingTo(at) => self.remap_to(old, at, bytes, place.leaves()),
            Move::Leaving => self.remap_elsewhere(old, bytes, true),
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
                self.remap_elsewhere(old, bytes, false)
            }
        }
    }

    /// Unmaps what `old` has beyond `bytes`.
    fn shrink(&self, old: VaRange, bytes: usize) -> Result<(), Error> {
        drop(self.lock_one(old, None)?);
        let rest = VaRange {
            start: old.start + bytes,
            end: old.end,
        };
        if rest.start < rest.end {
            self.replace(rest, None)?;
            self.left(rest);
        }
        Ok(())
    }

    /// Lets `old` be `bytes` long if there is room behind it.
    fn grow_in_place(&self, old: VaRange, bytes: usize) -> Result<bool, Error> {
        let Ok(whole) = Self::in_pages_at(old.start, bytes) else {
            return Ok(false);
        };
        let more = VaRange {
            start: old.end,
            end: whole.end,
        };
        let (two, attributes) = self.lock_one(old, Some(more))?;
        let tree = &self.pmap.tree;
        if !Part::make_room_if_free(tree.parts_of(&two, more))? {
            return Ok(false);
        }
        // The attachment is of what was there: the object must find what is new, too.
        let added = self.moved(&attributes, old.end, more)?;
        self.charging(more.len(), attributes.flags, || {
            let grown = Usage::of(attributes.flags, more.pages());
            self.rules(&two).count_new(Usage::NONE, grown)
        })?;
        for mut part in tree.parts_of(&two, more) {
            part.set(Some(added.clone()));
        }
        Ok(true)
    }

    /// Moves `old` to where there is room for `bytes`.
    fn remap_elsewhere(&self, old: VaRange, bytes: usize, leave: bool) -> Result<usize, Error> {
        self.place(bytes, &mut |to| self.move_to(old, to, leave))
    }

    /// Moves `old` to `at`, in the place of whatever is there.
    fn remap_to(&self, old: VaRange, at: usize, bytes: usize, leave: bool) -> Result<usize, Error> {
        let to = Self::in_pages_at(at, bytes)?;
        if to.start < old.end && old.start < to.end {
            let reason = "the old and the new place overlap";
            return Err(Error::Invalid { reason });
        }
        drop(self.lock_one(old, None)?);
        loop {
            self.replace(to, None)?;
            // Somebody may map something there before it is locked again.
            if self.move_to(old, to, leave)? {
                return Ok(at);
            }
        }
    }

    /// Moves the mapping at `old` to `to` if that is free.
    fn move_to(&self, old: VaRange, to: VaRange, leave: bool) -> Result<bool, Error> {
        let kept = old.len().min(to.len());
        let pmap = self.pmap.locking.pmap();
        let (two, attributes) = self.lock_one(old, Some(to))?;
        let tree = &self.pmap.tree;
        if !Part::make_room_if_free(tree.parts_of(&two, to))? {
            return Ok(false);
        }
        let moved = self.moved(&attributes, old.start, to)?;
        tree.parts_of(&two, old).try_for_each(|mut part| {
            part.make_room()?;
            self.pmap.own_used(&mut part)
        })?;
        let target = VaRange::sized(to.start, kept);
        let source = VaRange::sized(old.start, kept);
        let stays = leave.then(|| Attributes {
            flags: attributes.flags.without(Flags::LOCKED | Flags::ON_FAULT),
            ..attributes.clone()
        });
        let before = Usage::of(attributes.flags, source.pages());
        let left = stays.as_ref();
        let left = left.map_or(Usage::NONE, |left| Usage::of(left.flags, source.pages()));
        let after = Usage::of(attributes.flags, to.pages()) + left;
        // What stays behind is charged as the mapping that has gone, so a move that leaves
        // nothing behind is charged for what is new only.
        let more = if leave { to.len() } else { to.len() - kept };
        self.charging(more, attributes.flags, || {
            let rules = self.rules(&two);
            rules.count_new(before, after)?;
            let prepared = self.pmap.prepare_move(&two, source, target);
            // Nothing has shrunk, so nothing that others could have taken is to be had back.
            prepared.inspect_err(|_| {
                let back = rules.count(after, before);
                debug_assert!(back.is_ok(), "less is within all limits");
            })
        })?;
        self.pmap.move_pages(&two, source, target);
        for mut part in tree.parts_of(&two, to) {
            part.set(Some(moved.clone()));
        }
        for mut part in tree.parts_of(&two, source) {
            match leave {
                true => part.update(|left| {
                    left.flags = left.flags.without(Flags::LOCKED | Flags::ON_FAULT);
                }),
                false => part.set(None),
            }
        }
        drop(two);
        drop(pmap);
        if old.len() > kept {
            // Nobody else has reason to change it meanwhile; who does has his way.
            self.replace(
                VaRange {
                    start: old.start + kept,
                    end: old.end,
                },
                None,
            )?;
        }
        if !leave {
            self.left(old);
        }
        Ok(true)
    }

    /// What is mapped at `old` when it is mapped at `to`.
    fn moved(
        &self,
        attributes: &Attributes<M, P>,
        old: usize,
        to: VaRange,
    ) -> Result<Attributes<M, P>, Error> {
        let attachment = attributes.attachment.as_ref();
        let moved = attachment.map(|at| at.object().attach(at.owner(), to, at.index(old)));
        Ok(Attributes {
            flags: attributes.flags,
            attachment: moved.transpose()?,
        })
    }

    /// Locks `old`, which must be mapped with the same attributes everywhere, and `more`.
    fn lock_one(&self, old: VaRange, more: Option<VaRange>) -> Result<One<'_, M, P>, Error> {
        let tree = &self.pmap.tree;
        let two = match more {
            Some(more) => tree.lock_two(old, more)?,
            None => tree.lock(old)?.into(),
        };
        let mut found: Option<Attributes<M, P>> = None;
        let (mut to, mut alike) = (old.start, true);
        for part in tree.parts_of(&two, old) {
            part.for_each(|mapped| {
                alike &= mapped.range.start == to;
                let first = found.get_or_insert_with(|| mapped.attributes());
                alike &= first.go_on_in(&mapped.attributes());
                if alike {
                    to = mapped.range.end;
                }
            });
        }
        match found {
            Some(attributes) if to == old.end => Ok((two, attributes)),
            _ => Err(Error::NotOne { address: to }),
        }
    }

    /// Brings the pages of `range` if what begins there is locked in memory.
    pub(super) fn populate_locked(&self, range: VaRange) {
        let first = VaRange::sized(range.start, PAGE_SIZE);
        let Ok(mut locked) = self.pmap.tree.lock(first) else {
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

//! Unmapping memory, from the call to the tables that are freed.
//!
//! [`Unmapping`] owns the steps that a mapping in the place of others takes, too:
//!
//! 1. **Lock** the slots of the range ([`Unmapping::lock`]), in a block of delayed invalidation if
//!    the policy wants one around them, and get all that the rest needs. Counting against the
//!    space's limits is the last step that can fail.
//! 2. **Clear and flush** ([`Removal::pages`]): entries out of the tables, PV entries off their
//!    pages' lists; flush the TLBs of the CPUs that may have the translations; then free frames.
//! 3. **Set** the new mapping, or none, and release the slots ([`Unmapping::finish`]).
//! 4. **Give back**: reserved swap space, objects that are not mapped any more. With nothing mapped
//!    also the addresses, to be used again first, and tables that are not needed.

use super::arena::TABLE;
use super::regions::Changing;
use super::{HEAP_START, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::push;
use crate::object::Attached;
use crate::pmap::{Removal, whole_lines};
use crate::policy::{MapLocking, System};
use crate::tree::{ALL, Attributes, Locked, Part, Place};
use crate::usage::Usage;
use alloc::vec::Vec;
use machine::VaRange;

impl<S: System> Space<S> {
    /// Unmaps whatever is mapped in `range` (its end rounded up to pages). When it
    /// returns, no CPU can reach the pages. Holes are no error, as POSIX says.
    pub fn unmap(&self, range: VaRange) -> Result<(), Error> {
        let range = Self::in_pages(range)?;
        self.vm.with_frames(|| self.unmap_pages(range))
    }

    #[inline(never)]
    fn unmap_pages(&self, range: VaRange) -> Result<(), Error> {
        let mut write = self.pmap.locking.write();
        let place = self.pmap.tree.find(range.start);
        if place.is_hole(range) {
            Ok(())
        } else {
            self.give_back(place, range, Some(&mut write))
        }
    }

    /// Unmaps `range`, at whose start `place` was found. Its addresses are used again first, and
    /// tables that are not needed go. As [`Space::clear_locked`] with `write`.
    #[inline(always)]
    pub(super) fn give_back(
        &self,
        place: Place<'_, S>,
        range: VaRange,
        write: Option<&mut Write<'_, S>>,
    ) -> Result<(), Error> {
        let leaves_tables = self.clear(place, range, write)?;
        self.given_back(place, range, leaves_tables);
        Ok(())
    }

    /// `range`, at whose start `place` was found, has been unmapped, and perhaps left tables.
    #[inline]
    pub(super) fn given_back(&self, place: Place<'_, S>, range: VaRange, leaves_tables: bool) {
        self.arenas.unmapped(range);
        if leaves_tables {
            self.trim(place, range);
        }
    }

    /// Leaves `range`, at whose start `place` was found, without a mapping. Says whether tables may
    /// be left that are not needed.
    #[inline(always)]
    pub(super) fn clear(
        &self,
        place: Place<'_, S>,
        range: VaRange,
        write: Option<&mut Write<'_, S>>,
    ) -> Result<bool, Error> {
        let changing = self.region_changes(range);
        let mut unmapping = Unmapping::new(self);
        unmapping.lock(place, range)?;
        self.clear_locked(&mut unmapping, range, (changing, write), || {})
    }

    /// Leaves `range`, which is locked, without a mapping, after the announcement of the change;
    /// `done` is called when the pages are gone, before the slots are released. With `write`, the
    /// map's lock, the policy may downgrade it.
    #[inline(always)]
    pub(super) fn clear_locked(
        &self,
        unmapping: &mut Unmapping<'_, S>,
        range: VaRange,
        (changing, write): (Changing<'_, S>, Option<&mut Write<'_, S>>),
        done: impl FnOnce(),
    ) -> Result<bool, Error> {
        let rules = self.rules(unmapping.locked());
        rules.count(unmapping.usage(), Usage::NONE)?;
        let locking = &self.pmap.locking;
        if let Some(write) = write.filter(|_| locking.downgrades()) {
            self.region_gone(range);
            drop(changing);
            locking.downgrade(write);
            return Ok(unmapping.finish(None, done));
        }
        let leaves_tables = unmapping.finish(None, done);
        self.region_gone(range);
        Ok(leaves_tables)
    }

    /// Unmaps all, and empties the heap. New memory is not locked any more.
    pub(super) fn clear_all(&self) {
        let place = self.pmap.tree.find(ALL.start);
        let mut removal = self.pmap.removal();
        let locked = removal.lock(place, ALL);
        locked.unwrap_or_else(|_| unreachable!("whole slots need no memory"));
        let (mut usage, mut attached) = (Usage::NONE, Vec::new());
        for part in removal.locked.occupied() {
            // Without room an object may end here; that waits for no lock, and no task waits any
            // more for the slots that are locked.
            let _ = keep_attachments(&part, &mut usage, &mut attached);
        }
        let rules = self.rules_mut(&mut removal.locked);
        rules.future = Flags::NONE;
        let counted = rules.count(usage, Usage::NONE);
        debug_assert!(counted.is_ok(), "a decrease is never refused");
        removal.pages();
        removal
            .locked
            .occupied()
            .for_each(|mut part| part.set(None));
        self.written.heap_end.set(HEAP_START);
        drop(removal);
        self.vm.uncommit(usage.charged);
        self.region_gone(ALL);
    }

    /// Frees tables that `range`, at whose start `place` was found, does not need any more: those
    /// whose entries share no line with others', and in place of the others those that this CPU
    /// left longest ago.
    pub(super) fn trim(&self, place: Place<'_, S>, range: VaRange) {
        if place.level == 0 && range.end <= place.range.end {
            self.vacate(place)
        } else {
            self.trim_several(range)
        }
    }

    #[inline(never)]
    fn trim_several(&self, range: VaRange) {
        let whole = whole_lines(range);
        if whole.start < whole.end {
            self.pmap.trim(whole);
        }
        let before = VaRange {
            end: whole.start.min(range.end),
            ..range
        };
        let after = VaRange {
            start: whole.end.max(range.start),
            ..range
        };
        for part in [before, after] {
            self.pmap
                .tree
                .places(part)
                .for_each(|place| self.vacate(place));
        }
    }

    /// Remembers a slot of level 0 that has become empty, and frees the table of the one that is
    /// forgotten for it.
    fn vacate(&self, place: Place<'_, S>) {
        let is_spare = place.level == 0 && place.slot.is_empty();
        if is_spare && let Some(other) = self.arenas.vacated(place.range.start) {
            self.pmap.trim(VaRange::sized(other, TABLE));
        }
    }
}

/// The map's lock, held while regions change.
pub(super) type Write<'a, S> =
    <<S as System>::Locking as MapLocking<<S as System>::Machine>>::Write<'a>;

/// A range whose mappings are on their way out: locked, and nothing has changed yet.
pub(super) struct Unmapping<'a, S: System> {
    space: &'a Space<S>,
    removal: Removal<'a, S>,
    /// The usage of the mappings.
    usage: Usage,
    /// Keeps their objects. An object may go with its last attachment, and write; so not while
    /// slots are locked.
    attached: Vec<Attached<S>>,
}

impl<'a, S: System> Unmapping<'a, S> {
    /// In a space where nothing is locked yet; [`Unmapping::lock`] is a step of its own as
    /// [`Removal::lock`] is.
    #[inline(always)]
    pub(super) fn new(space: &'a Space<S>) -> Self {
        Unmapping {
            space,
            removal: space.pmap.removal(),
            usage: Usage::NONE,
            attached: Vec::new(),
        }
    }

    /// Locks `range`, at whose start `place` was found, and gets all that is needed to change the
    /// mappings there. After an error it is to be dropped.
    #[track_caller]
    #[inline(always)]
    pub(super) fn lock(&mut self, place: Place<'a, S>, range: VaRange) -> Result<(), Error> {
        self.removal.lock(place, range)?;
        let Some(part) = self.removal.locked.only(range) else {
            return self.prepare_several();
        };
        prepare(part, &mut self.usage, &mut self.attached)
    }

    /// Gets what is needed to change the mappings in several slots.
    #[inline(never)]
    fn prepare_several(&mut self) -> Result<(), Error> {
        let mut parts = self.removal.locked.parts();
        parts.try_for_each(|part| prepare(part, &mut self.usage, &mut self.attached))
    }

    /// The locked range.
    pub(super) fn locked(&self) -> &Locked<'a, S> {
        &self.removal.locked
    }

    /// The usage of the mappings.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes the mappings away, puts one with `attributes` in their place, or nothing, and gives
    /// back their reservations; calls `done` before it releases the slots. When it returns, no CPU
    /// can reach the pages that were there. Says whether tables may be left that are not needed.
    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        attributes: Option<Attributes<S>>,
        done: impl FnOnce(),
    ) -> bool {
        self.removal.pages();
        let locked = &mut self.removal.locked;
        let leaves_tables = match locked.only(locked.range()) {
            Some(part) => set(part, attributes),
            None => set_several(locked, attributes),
        };
        done();
        self.removal.release();
        self.space.vm.uncommit(self.usage.charged);
        if !self.attached.is_empty() {
            self.attached.clear();
        }
        leaves_tables
    }
}

/// Gets what is needed to change the mappings in `part`, whose attachments are kept in `kept`; adds
/// their usage to `usage`.
#[inline(always)]
fn prepare<S: System>(
    mut part: Part<'_, S>,
    usage: &mut Usage,
    kept: &mut Vec<Attached<S>>,
) -> Result<(), Error> {
    part.make_room()?;
    keep_attachments(&part, usage, kept)
}

/// Puts a mapping with `attributes`, or nothing, in the place of all of `part`; says whether that
/// leaves a table that may not be needed.
#[inline(always)]
fn set<S: System>(mut part: Part<'_, S>, attributes: Option<Attributes<S>>) -> bool {
    part.set(attributes);
    part.is_empty() && part.leaf().get().is_some()
}

/// Puts a mapping with `attributes`, or nothing, in the place of all that is `locked`.
#[inline(never)]
fn set_several<S: System>(locked: &mut Locked<'_, S>, attributes: Option<Attributes<S>>) -> bool {
    let parts = locked.parts();
    parts.fold(false, |left, part| left | set(part, attributes.clone()))
}

/// Keeps the attachments of `part` in `kept`, as far as there is room for them, and adds its usage
/// to `usage`; an error if room was missing.
#[inline(always)]
fn keep_attachments<S: System>(
    part: &Part<'_, S>,
    usage: &mut Usage,
    kept: &mut Vec<Attached<S>>,
) -> Result<(), Error> {
    let mut room = Ok(());
    part.for_each(|mapped| {
        *usage += Usage::of(mapped.flags, mapped.range.pages());
        if let Some(attached) = mapped.attachment {
            room = room.and(keep(attached, kept));
        }
    });
    room
}

/// Keeps `attached` in `kept`, if it is not the last one there.
#[inline(never)]
fn keep<S: System>(attached: &Attached<S>, kept: &mut Vec<Attached<S>>) -> Result<(), Error> {
    if kept.last() == Some(attached) {
        Ok(())
    } else {
        push(kept, attached.clone())
    }
}

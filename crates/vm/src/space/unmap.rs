//! Unmapping memory, from the call to the tables that are freed.
//!
//! [`Unmapping`] has the steps, which a mapping that replaces others also takes:
//!
//! 1. **Lock** the slots of the range, and get all that the rest needs. Where a task may sleep in a
//!    block of delayed invalidation, the block is opened first. Counting against the space's limits
//!    is the last step that can fail.
//! 2. **Clear** the entries, and take PV entries off their pages' lists.
//! 3. **Flush** the TLBs of the CPUs that may have the translations.
//! 4. **Free** the frames. Now the slots get the new mapping, or none, and are released.
//!
//! Then reserved swap space is given back, and objects that are not mapped any more are released.
//! If nothing new is mapped, the addresses are given back, to be used again first, and so are
//! tables that are not needed.

use super::arena::TABLE;
use super::gate::Guard;
use super::{HEAP_START, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::push;
use crate::object::Attached;
use crate::pmap::{Gather, Removal, whole_lines};
use crate::system::{Change, Op, System};
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
        let mut op = self.begin(Op::Change);
        let place = self.pmap.tree.find(range.start);
        if place.is_hole(range) {
            Ok(())
        } else {
            self.give_back(place, range, &mut op)
        }
    }

    /// Unmaps `range`; `place` was found at its start. Its addresses are used again first, and
    /// tables that are not needed are freed.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn give_back<'a>(
        &'a self,
        place: Place<'a, S>,
        range: VaRange,
        op: &mut Guard<'a, S>,
    ) -> Result<(), Error> {
        let left = self.clear(place, range, op)?;
        self.given_back(place, range, left);
        Ok(())
    }

    /// Removes all mappings in `range`, for which `place` was found at the start. Returns what that
    /// leaves.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn clear<'a>(
        &'a self,
        place: Place<'a, S>,
        range: VaRange,
        op: &mut Guard<'a, S>,
    ) -> Result<Left, Error> {
        self.report(op, Change::Expected(range));
        let mut unmapping = Unmapping::new(self);
        unmapping.lock(place, range)?;
        unmapping.count()?;
        self.report(op, Change::Unmapping(range));
        unmapping.take_pages();
        let left = unmapping.set(None);
        unmapping.release();
        self.report(op, Change::Unmapped(range));
        Ok(left)
    }

    /// Gives back the addresses of `range`, which has been unmapped, and tables that it does not
    /// need any more. `place` was found at its start.
    #[inline]
    pub(super) fn given_back(&self, place: Place<'_, S>, range: VaRange, left: Left) {
        self.arenas.unmapped(range);
        if left == Left::Tables {
            self.trim(place, range);
        }
    }

    /// Unmaps all, and empties the heap. New memory is not locked any more.
    pub(super) fn clear_all<'a>(&'a self, op: &mut Guard<'a, S>) {
        let place = self.pmap.tree.find(ALL.start);
        let mut removal = self.pmap.removal();
        let locked = removal.lock(place, ALL);
        locked.unwrap_or_else(|_| unreachable!("whole slots need no memory"));
        let (mut usage, mut attached) = (Usage::NONE, Vec::new());
        for part in removal.locked.parts().occupied() {
            // Without room an object may end here; that waits for no lock, and no other task waits
            // for the locked slots any more.
            let _ = keep_attachments(&part, &mut usage, &mut attached);
        }
        let rules = self.rules_mut(&mut removal.locked);
        rules.future = Flags::NONE;
        let counted = rules.count(usage, Usage::NONE);
        debug_assert!(counted.is_ok(), "a decrease is never refused");
        removal.pages();
        removal
            .locked
            .parts()
            .occupied()
            .for_each(|mut part| part.set(None));
        self.written.heap_end.set(HEAP_START);
        drop(removal);
        self.vm.uncommit(usage.charged);
        self.report(op, Change::Unmapped(ALL));
    }

    /// Frees tables that `range` does not need any more; `place` was found at its start. It frees
    /// those whose entries share no line with others', and in place of the others those that this
    /// CPU left longest ago.
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
        debug_assert!(
            whole.start == whole.end || range.common(whole) == whole,
            "tables beyond {range:?} go"
        );
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

    /// Remembers a slot of level 0 that has become empty, and frees the table of the slot that is
    /// forgotten instead.
    fn vacate(&self, place: Place<'_, S>) {
        let is_spare = place.level == 0 && place.slot.is_empty();
        if is_spare && let Some(other) = self.arenas.vacated(place.range.start) {
            self.pmap.trim(VaRange::sized(other, TABLE));
        }
    }
}

/// What unmapped mappings leave behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    Nothing,
    /// Tables that may not be needed.
    Tables,
}

/// A locked range whose mappings are to be removed; nothing has changed yet.
pub(super) struct Unmapping<'a, S: System> {
    space: &'a Space<S>,
    removal: Removal<'a, S>,
    /// The usage of the mappings.
    usage: Usage,
    /// Keeps their objects alive: an object may end, and write, with its last attachment, which
    /// must not happen while slots are locked.
    attached: Vec<Attached<S>>,
}

impl<'a, S: System> Unmapping<'a, S> {
    /// An unmapping that has locked nothing yet; [`Unmapping::lock`] is a step of its own for
    /// speed, as [`Removal::lock`] is.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn new(space: &'a Space<S>) -> Self {
        Unmapping {
            space,
            removal: space.pmap.removal(),
            usage: Usage::NONE,
            attached: Vec::new(),
        }
    }

    /// Locks `range`, for which `place` was found at the start, and gets all that is needed to
    /// change the mappings there. After an error the caller drops it.
    #[track_caller]
    #[inline(always)] // a call here shows in tests/costs.rs
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

    /// Counts the removal of the mappings against the space's limits.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn count(&self) -> Result<(), Error> {
        debug_assert!(
            self.usage.charged <= self.usage.mapped,
            "more pages are charged than mapped"
        );
        self.space
            .rules(self.locked())
            .count(self.usage, Usage::NONE)
    }

    /// Removes the pages. When it returns, no CPU can reach them.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn take_pages(&mut self) {
        if self.removal.has_pages() {
            self.take_some_pages();
        }
    }

    #[inline(never)]
    fn take_some_pages(&mut self) {
        let mut gather = Gather::new();
        self.removal.clear(&mut gather);
        self.removal.flush(&mut gather);
        self.removal.free(&mut gather);
    }

    /// Sets a mapping with `attributes`, or none, in the place of the mappings. Returns what that
    /// leaves.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn set(&mut self, attributes: Option<Attributes<S>>) -> Left {
        let locked = &mut self.removal.locked;
        match locked.only(locked.range()) {
            Some(part) => set(part, attributes),
            None => set_several(locked, attributes),
        }
    }

    /// Releases the slots, and gives back what the mappings have reserved.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(super) fn release(&mut self) {
        self.removal.release();
        self.space.vm.uncommit(self.usage.charged);
        if !self.attached.is_empty() {
            self.attached.clear();
        }
    }
}

/// Gets what is needed to change the mappings in `part`, whose attachments are kept in `kept`; adds
/// their usage to `usage`.
#[inline(always)] // a call here shows in tests/costs.rs
fn prepare<S: System>(
    mut part: Part<'_, S>,
    usage: &mut Usage,
    kept: &mut Vec<Attached<S>>,
) -> Result<(), Error> {
    part.make_room()?;
    keep_attachments(&part, usage, kept)
}

/// Sets a mapping with `attributes`, or none, in the place of all of `part`. Returns what that
/// leaves.
#[inline(always)] // a call here shows in tests/costs.rs
fn set<S: System>(mut part: Part<'_, S>, attributes: Option<Attributes<S>>) -> Left {
    part.set(attributes);
    if part.is_empty() && part.leaf().get().is_some() {
        Left::Tables
    } else {
        Left::Nothing
    }
}

/// Sets a mapping with `attributes`, or none, in the place of all that is `locked`.
#[inline(never)]
fn set_several<S: System>(locked: &mut Locked<'_, S>, attributes: Option<Attributes<S>>) -> Left {
    let left = locked.parts().map(|part| set(part, attributes.clone()));
    left.fold(Left::Nothing, Left::max)
}

/// Keeps the attachments of `part` in `kept`, as far as there is room for them, and adds its usage
/// to `usage`; an error if room was missing.
#[inline(always)] // a call here shows in tests/costs.rs
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

//! A held slot, and an operation's part of it.

use super::extent::{Attributes, Extent, Mapped};
use super::extents::Extents;
use super::slot::{Inside, Kind};
use super::state::{Size, State};
use super::{Place, Slot};
use crate::error::Error;
use crate::flags::Flags;
use crate::pv::{Pv, PvTables, Table};
use crate::system::System;
use crate::usage::Usage;
use core::{iter, slice};
use machine::{PAGE_SIZE, VaRange};

/// A locked slot and the part of a locked range that lies in it. A walk that shares the slot
/// ([`super::coupled`]) only reads it.
pub(crate) struct Part<'a, S: System> {
    place: Place<'a, S>,
    /// The addresses of the operation.
    range: VaRange,
}

impl<'a, S: System> Part<'a, S> {
    /// The part of `place` in `range`; its lock is held, or a walk shares it, while this lives.
    pub(super) fn new(place: Place<'a, S>, range: VaRange) -> Self {
        let part = Part {
            place,
            range: range.common(place.range),
        };
        part.check();
        part
    }

    /// Asserts the invariants of a part.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn check(&self) {
        debug_assert!(self.range.start < self.range.end, "a part without a page");
        debug_assert!(
            (self.range.start | self.range.end).is_multiple_of(PAGE_SIZE),
            "a part is whole pages"
        );
        debug_assert!(
            self.range.common(self.place.range) == self.range,
            "a part lies in its slot"
        );
        machine::invariant!(
            S::Machine: self.place.slot.is_held(),
            "nobody holds the slot of {:?}", self.range
        );
    }

    /// The part of a range that begins in `place`.
    #[inline]
    pub(super) fn beginning(place: Place<'a, S>, range: VaRange) -> Self {
        let end = range.end.min(place.range.end);
        let range = VaRange { end, ..range };
        let part = Part { place, range };
        part.check();
        part
    }

    /// The addresses of the operation.
    #[inline]
    pub(crate) fn range(&self) -> VaRange {
        self.range
    }

    /// The part of the slot in `range`, which lies in this one. The caller does not use both at the
    /// same time.
    pub(crate) fn cut(&mut self, range: VaRange) -> Part<'_, S> {
        debug_assert!(
            range.common(self.range) == range,
            "{range:?} is cut out of {:?}",
            self.range
        );
        Part::new(self.place, range)
    }

    /// The part of `range`, while no task changes the mappings.
    pub(crate) fn again(&self, range: VaRange) -> Part<'a, S> {
        Part::new(self.place, range)
    }

    /// The slot.
    pub(crate) fn slot(&self) -> &'a Slot<S> {
        self.place.slot
    }

    /// Returns true if nothing is mapped in the slot.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.place.slot.is_empty()
    }

    /// Returns true if all entries of the slot are empty and its table is not shared.
    #[inline]
    pub(crate) fn is_vacant(&self) -> bool {
        self.place.slot.is_vacant()
    }

    /// How the slot's pages are mapped.
    #[inline]
    pub(crate) fn size(&self) -> Size {
        self.place.slot.size()
    }

    /// Sets how the slot's pages are mapped.
    pub(crate) fn set_size(&mut self, size: Size) {
        debug_assert_eq!(self.place.level, 0, "only small slots have pages");
        self.place.slot.set_size(size);
    }

    /// The addresses that the slot covers.
    pub(crate) fn slot_range(&self) -> VaRange {
        self.place.range
    }

    /// Returns true if all of the slot is mapped with equal attributes, as private anonymous
    /// memory.
    pub(crate) fn is_uniform_private(&self) -> bool {
        // SAFETY: the slot's lock is held, and nothing writes during the look.
        let mapped = unsafe { &*self.place.slot.look_inside() }.whole(self.place.range);
        self.place.slot.state() == State::Whole && mapped.is_private_anonymous()
    }

    /// Adds `delta` to the slot's count of entries of `kind`.
    #[inline]
    pub(crate) fn add(&mut self, kind: Kind, delta: i32) {
        debug_assert_eq!(self.place.level, 0, "only small slots have entries");
        machine::invariant!(
            S::Machine: self.place.slot.is_held_alone(),
            "entries are counted under the lock"
        );
        self.place.slot.add(kind, delta);
    }

    /// The slot's table.
    #[inline]
    pub(crate) fn leaf(&self) -> Table {
        machine::invariant!(S::Machine: self.place.slot.is_held(), "nobody holds the table's slot");
        // SAFETY: the slot's lock is held, and nothing writes during the read.
        unsafe { (*self.place.slot.look_inside()).leaf }
    }

    /// The PV entry of the page at `address`, whose table is there.
    #[inline]
    pub(crate) fn pv(&self, address: usize) -> Pv {
        debug_assert!(
            self.place.range.contains(address),
            "another slot's PV entry"
        );
        let pv = self.pv_tables().entry(address);
        pv.expect("a mapping has a PV table")
    }

    /// The slot's PV tables.
    #[inline]
    pub(crate) fn pv_tables(&self) -> PvTables {
        machine::invariant!(S::Machine: self.place.slot.is_held(), "nobody holds the tables' slot");
        // SAFETY: the slot's lock is held, and nothing writes during the look.
        unsafe { (*self.place.slot.look_inside()).pv }
    }

    /// The slot's tables.
    #[inline]
    pub(crate) fn inside(&mut self) -> &mut Inside<S> {
        machine::invariant!(
            S::Machine: self.place.slot.is_held_alone(),
            "a slot changes under its lock"
        );
        // SAFETY: the slot's lock is held, and this is the holder's only reference.
        unsafe { &mut *self.place.slot.inside() }
    }

    /// The mappings in the range, cut to it, in order. Nothing changes them meanwhile.
    #[inline(always)] // a call here shows in tests/costs.rs
    fn mappings(&self) -> impl Iterator<Item = Mapped<'_, S>> {
        let range = self.range;
        // SAFETY: the slot's lock is held, and nothing writes while the result lives,
        // which borrows the part.
        let inside = || unsafe { &*self.place.slot.look_inside() };
        let state = self.place.slot.state();
        debug_assert!(
            state != State::Parts || self.place.level == 0,
            "only small slots are mapped in parts"
        );
        let (mut whole, extents) = match state {
            State::Empty | State::Divided => (None, &[][..]),
            State::Whole => (Some(inside().whole(range)), &[][..]),
            State::Parts => (None, inside().extents.from(range.start)),
        };
        let mut extents = extents.iter();
        let mut cut = move || {
            let extent = extents.next()?;
            (extent.range.start < range.end).then(|| extent.cut_to(range))
        };
        iter::from_fn(move || whole.take().or_else(&mut cut))
    }

    /// Calls `visit` with each mapping in the range, cut to it, in order.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Mapped<'_, S>)) {
        for mapped in self.mappings() {
            visit(mapped);
        }
    }

    /// Visits each mapping, up to the first error.
    #[inline]
    pub(crate) fn try_for_each(
        &self,
        mut visit: impl FnMut(Mapped<'_, S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for mapped in self.mappings() {
            visit(mapped)?;
        }
        Ok(())
    }

    /// The mapping at the range's start.
    #[inline]
    pub(crate) fn first(&self) -> Option<Mapped<'_, S>> {
        let first = self.mappings().next();
        first.filter(|mapped| mapped.range.start == self.range.start)
    }

    /// The addresses, of the range, of the mapping of `address`.
    pub(crate) fn mapping_of(&self, address: usize) -> Option<VaRange> {
        let mut ranges = self.mappings().map(|mapped| mapped.range);
        ranges.find(|range| range.contains(address))
    }

    /// Visits each mapping, where all of the range must be mapped.
    ///
    /// # Errors
    /// [`Error::NotMapped`] at the first address that is not mapped; or those of `visit` before it.
    #[inline]
    pub(crate) fn visit(
        &self,
        mut visit: impl FnMut(Mapped<'_, S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut address = self.range.start;
        for mapped in self.mappings() {
            if mapped.range.start != address {
                break;
            }
            address = mapped.range.end;
            visit(mapped)?;
        }
        if address < self.range.end {
            Err(Error::NotMapped { address })
        } else {
            Ok(())
        }
    }

    /// Fails with the first hole's address, unless all of the range is mapped.
    pub(crate) fn covered(&self) -> Result<(), Error> {
        self.visit(|_| Ok(()))
    }

    /// The usage of the range.
    pub(crate) fn usage(&self) -> Usage {
        self.usage_if(|flags| flags)
    }

    /// The usage of the range if it had other flags.
    pub(crate) fn usage_if(&self, change: impl Fn(Flags) -> Flags) -> Usage {
        let mut usage = Usage::NONE;
        self.for_each(|mapped| usage += Usage::of(change(mapped.flags), mapped.range.pages()));
        usage
    }

    /// Makes room for one [`Part::set`] or [`Part::update`], which then cannot fail.
    #[inline]
    pub(crate) fn make_room(&mut self) -> Result<(), Error> {
        self.make_room_for(1)
    }

    /// Gets the memory that `changes` changes of the slot may need.
    #[inline]
    fn make_room_for(&mut self, changes: usize) -> Result<(), Error> {
        if self.is_all() {
            return Ok(());
        }
        self.place.slot.set_room();
        self.inside().extents.make_room(changes)
    }

    /// Makes room for `changes` changes in each of `parts`, up to the first in which something is
    /// mapped. Returns true if nothing is mapped in any of them.
    pub(crate) fn make_room_if_all_free(
        mut parts: impl Iterator<Item = Self>,
        changes: usize,
    ) -> Result<bool, Error> {
        let taken = parts.find_map(|mut part| match part.make_room_if_free(changes) {
            Ok(true) => None,
            other => Some(other),
        });
        taken.unwrap_or(Ok(true))
    }

    /// Makes room for `changes` changes if nothing is mapped in the range. Returns true if nothing
    /// is.
    #[inline]
    pub(crate) fn make_room_if_free(&mut self, changes: usize) -> Result<bool, Error> {
        if self.is_all() {
            Ok(self.is_empty())
        } else {
            self.make_room_if_free_in_part(changes)
        }
    }

    /// Makes room for `changes` changes in a part of the slot, if that is free. Returns true if it
    /// is.
    #[inline(never)]
    fn make_room_if_free_in_part(&mut self, changes: usize) -> Result<bool, Error> {
        let mut is_free = true;
        self.for_each(|_| is_free = false);
        if is_free {
            self.make_room_for(changes)?;
        }
        Ok(is_free)
    }

    /// Sets a mapping with these attributes, or none, in the place of all mappings in the range.
    /// There must be room.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn set(&mut self, attributes: Option<Attributes<S>>) {
        if self.is_all() {
            self.become_uniform(attributes)
        } else {
            self.set_some(attributes)
        }
    }

    /// Sets a part of the slot.
    #[inline(never)]
    fn set_some(&mut self, attributes: Option<Attributes<S>>) {
        debug_assert!(self.is_divisible(), "a large slot changes as a whole");
        let range = self.range;
        if attributes.is_none() && self.inside().extents.is_only(range) {
            return self.become_uniform(None);
        }
        if attributes
            .as_ref()
            .is_some_and(|of| of.attachment.is_some())
        {
            self.place.slot.set_attached();
        }
        self.divide().replace(range, attributes);
        self.settle();
    }

    /// Changes the attributes of the mappings in the range: `change` gets those of each part of the
    /// range that is mapped alike. There must be room.
    #[inline]
    pub(crate) fn update(&mut self, mut change: impl FnMut(VaRange, &mut Attributes<S>)) {
        let (range, place) = (self.range, self.place.range);
        let (mut whole, mut first) = (None, 0);
        let extents = match self.place.slot.state() {
            State::Empty | State::Divided => return,
            State::Whole if self.is_all() => {
                let attributes = self.inside().whole(place).attributes();
                slice::from_mut(whole.insert(Extent { range, attributes }))
            }
            State::Whole => {
                debug_assert!(self.is_divisible(), "a large slot changes as a whole");
                let extents = self.become_parts();
                first = extents.isolate_only(range);
                &mut extents.all_mut()[first..=first]
            }
            State::Parts => {
                let last;
                (first, last) = self.inside().extents.isolate(range);
                &mut self.inside().extents.all_mut()[first..last]
            }
        };
        for extent in &mut *extents {
            change(extent.range, &mut extent.attributes);
        }
        let last = first + extents.len();
        match whole {
            Some(whole) => self.inside().set_whole(Some(whole.attributes)),
            None => {
                self.inside().extents.join(first, last);
                self.settle();
            }
        }
    }

    /// Describes the slot's mappings by extents from now on, and returns these.
    #[inline]
    fn divide(&mut self) -> &mut Extents<S> {
        match self.place.slot.state() {
            State::Parts => &mut self.inside().extents,
            _ => self.become_parts(),
        }
    }

    #[inline(always)] // a call here shows in tests/costs.rs
    fn become_parts(&mut self) -> &mut Extents<S> {
        debug_assert_eq!(self.place.level, 0, "only small slots are mapped in parts");
        machine::invariant!(
            S::Machine: matches!(self.place.slot.size(), Size::Pages | Size::Shared),
            "a run, or a superpage, is one mapping"
        );
        machine::invariant!(
            S::Machine: matches!(self.place.slot.state(), State::Empty | State::Whole),
            "a slot of parts, or one with a node, becomes parts"
        );
        let whole = self.place.slot.state() == State::Whole;
        self.place.slot.set_state(State::Parts);
        if whole {
            let place = self.place.range;
            let inside = self.inside();
            let attributes = inside.whole(place).attributes();
            inside.set_whole(None);
            inside.extents.start(Extent {
                range: place,
                attributes,
            });
        }
        &mut self.inside().extents
    }

    /// Updates the slot's byte if the slot became uniform.
    #[inline]
    fn settle(&mut self) {
        let place = self.place.range;
        machine::invariant!(
            // SAFETY: the slot's lock is held, and nothing writes during the look.
            S::Machine: unsafe { (*self.place.slot.look_inside()).extents.lie_in(place) },
            "a mapping reaches out of its slot"
        );
        match self.inside().extents.all() {
            [] => self.become_uniform(None),
            [one] if one.range == place => self.unite(),
            _ => {}
        }
    }

    /// Turns the only extent into the slot's attributes.
    #[inline]
    fn unite(&mut self) {
        let one = self.inside().extents.pop();
        self.become_uniform(one.map(|extent| extent.attributes));
    }

    #[inline(always)] // a call here shows in tests/costs.rs
    fn become_uniform(&mut self, attributes: Option<Attributes<S>>) {
        machine::invariant!(
            S::Machine: attributes.is_some()
                || self.size() == Size::Pages && self.place.slot.entries() == 0,
            "pages, or a table that others have, stay when their mapping goes"
        );
        machine::invariant!(
            S::Machine: self.place.slot.child().is_none(),
            "a slot with a node has no mappings"
        );
        self.place.slot.set_uniform(attributes.as_ref());
        let inside = self.inside();
        inside.extents.clear();
        inside.set_whole(attributes);
    }

    /// Returns true if the mappings in the range can be changed: not in a part of more than 2 MiB.
    pub(crate) fn is_divisible(&self) -> bool {
        self.place.level == 0 || self.is_all()
    }

    /// Returns true if the range covers all of the slot.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.range == self.place.range
    }
}

//! Mapping memory.

use super::gate::Guard;
use super::request::{At, Request};
use super::unmap::Unmapping;
use super::{HIGHEST, LOWEST, Space, whole_pages};
use crate::error::Error;
use crate::flags::Flags;
use crate::object::ObjectRef;
use crate::prot::Prot;
use crate::system::{Change, Op, System};
use crate::tree::{Attributes, Holding, Locked, Part, Place};
use crate::usage::Usage;
use crate::vm::Overcommit;
use alloc::sync::Arc;
use core::cell::Cell;
use machine::{PAGE_SIZE, VaRange};

/// A mapping to be made, at any address.
pub(super) struct New<'a, S: System> {
    /// The requested flags, and the mapping's own flags once it is made.
    pub(super) flags: Cell<Flags>,
    /// The object, and the first page of it that is mapped.
    pub(super) object: Option<(&'a ObjectRef<S>, u64)>,
}

impl<S: System> Space<S> {
    /// Maps `bytes` (rounded up to pages) of zeroes somewhere, and returns where.
    ///
    /// Writable memory reserves swap space. O(slots) in the usual case, whatever else is mapped:
    /// one slot for 128 MiB that never were subdivided.
    pub fn map(&self, bytes: usize, prot: Prot) -> Result<usize, Error> {
        self.map_as(&Request::anonymous(bytes, prot))
    }

    /// Maps zeroes at `range`, and replaces whatever is mapped there.
    pub fn map_fixed(&self, range: VaRange, prot: Prot) -> Result<(), Error> {
        let bytes = range.end.saturating_sub(range.start);
        let request = Request::anonymous(bytes, prot).at(At::Fixed(range.start));
        self.map_as(&request).map(|_| ())
    }

    /// Maps `request`, and returns where.
    ///
    /// Private writable memory reserves swap space. If `request` asks for populated or locked
    /// pages, they are in memory when the call returns, up to the first that is not available.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no mapping can be as requested, or the object is another VM's;
    /// [`Error::Denied`], [`Error::Exists`], [`Error::NoAddresses`], [`Error::OverCommit`],
    /// [`Error::OverLimit`], [`Error::LockLimit`], [`Error::OutOfMemory`].
    pub fn map_as(&self, request: &Request<'_, S>) -> Result<usize, Error> {
        let invalid = |reason| Err(Error::Invalid { reason });
        if let Some((object, _)) = request.object
            && !Arc::ptr_eq(object.vm(), &self.vm)
        {
            return invalid("the object is another VM's");
        }
        let bytes = match whole_pages(request.bytes) {
            None => {
                let bytes = request.bytes;
                return Err(Error::NoAddresses { bytes });
            }
            Some(0) => return invalid("the length is zero"),
            Some(bytes) => bytes,
        };
        let flags = self.honoured(request.flags).charged();
        if flags.has(Flags::SHARED | Flags::READ_ONLY) && flags.prot().writes() {
            return Err(Error::Denied);
        }
        let is_private = !flags.has(Flags::SHARED) && request.object.is_none();
        if flags.has(Flags::GROWS_DOWN) && !is_private {
            return invalid("only private anonymous memory grows down");
        }
        let pages = (bytes / PAGE_SIZE) as u64;
        if request
            .object
            .is_some_and(|(_, first)| first.checked_add(pages).is_none())
        {
            return invalid("the offset and the length are too large");
        }
        // Shared memory without an object gets one, which its mappings keep alive.
        let own = match request.object {
            None if flags.has(Flags::SHARED) => Some(self.vm.shared_memory(bytes as u64)?),
            _ => None,
        };
        let object = request.object.or(own.as_ref().map(|object| (object, 0)));
        let new = New {
            flags: Cell::new(flags),
            object,
        };
        let at = self.charging(bytes, flags, || {
            self.vm
                .with_frames(|| self.map_new(bytes, request.at, &new))
        })?;
        let flags = new.flags.get();
        if (request.populate || flags.has(Flags::LOCKED)) && !flags.has(Flags::ON_FAULT) {
            self.populate(VaRange::sized(at, bytes));
        }
        Ok(at)
    }

    /// `flags` without those that the VM ignores.
    fn honoured(&self, flags: Flags) -> Flags {
        match self.vm.overcommit() {
            Overcommit::Never => flags.without(Flags::NO_RESERVE),
            Overcommit::Heuristic | Overcommit::Always => flags,
        }
    }

    fn map_new(&self, bytes: usize, at: At, new: &New<'_, S>) -> Result<usize, Error> {
        let mut op = self.begin(Op::Change);
        let mut take = |place, range| self.take(place, range, new);
        let take_at = |range: VaRange| self.take(self.pmap.tree.find(range.start), range, new);
        let mapped = match at {
            At::Anywhere => self.place(bytes, &mut take),
            At::Hint(at) => match Self::hinted(at, bytes) {
                Some(range) if self.stack_above(range).is_none() && take_at(range)? => {
                    Ok(range.start)
                }
                _ => self.place(bytes, &mut take),
            },
            At::Fixed(at) => {
                let range = Self::in_pages_at(at, bytes)?;
                self.replace(range, new, &mut op)?;
                Ok(at)
            }
            At::Free(at) => {
                let range = Self::in_pages_at(at, bytes)?;
                let address = range.start;
                take_at(range)?
                    .then_some(at)
                    .ok_or(Error::Exists { address })
            }
        }?;
        let range = VaRange::sized(mapped, bytes);
        debug_assert!(Self::check(range).is_ok(), "no mapping may be at {range:?}");
        self.report_new(&mut op, range, new);
        Ok(mapped)
    }

    /// The range of a mapping of `bytes` at a hint, if a mapping may be there.
    fn hinted(at: usize, bytes: usize) -> Option<VaRange> {
        let start = at & !(PAGE_SIZE - 1);
        let end = start.checked_add(bytes)?;
        (start >= LOWEST && end <= HIGHEST).then_some(VaRange { start, end })
    }

    /// Reserves swap space for `bytes` mapped with `flags` if they take any, and
    /// gives it back if `map` fails.
    pub(super) fn charging<R>(
        &self,
        bytes: usize,
        flags: Flags,
        map: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        debug_assert!(
            bytes.is_multiple_of(PAGE_SIZE),
            "a part of a page is charged"
        );
        let pages = (bytes / PAGE_SIZE) as u64;
        let charge = if flags.has(Flags::CHARGED) { pages } else { 0 };
        self.vm.commit(charge)?;
        map().inspect_err(|_| self.vm.uncommit(charge))
    }

    /// Maps all of `range`, and replaces whatever is mapped there. When it returns, no CPU can
    /// reach the pages that were there.
    fn replace<'a>(
        &'a self,
        range: VaRange,
        new: &New<'_, S>,
        op: &mut Guard<'a, S>,
    ) -> Result<(), Error> {
        let mut attributes = self.attributes(new, range)?;
        let place = self.pmap.tree.find(range.start);
        self.report(op, Change::Expected(range));
        let mut unmapping = Unmapping::new(self);
        unmapping.lock(place, range)?;
        let before = unmapping.usage();
        self.admit(unmapping.locked(), new, &mut attributes, before, range)?;
        unmapping.take_pages();
        unmapping.set(Some(attributes));
        unmapping.release();
        self.report(op, Change::Unmapped(range));
        Ok(())
    }

    /// Maps all of `range`, if it is free; `place` was found at its start.
    pub(super) fn take(
        &self,
        place: Place<'_, S>,
        range: VaRange,
        new: &New<'_, S>,
    ) -> Result<bool, Error> {
        let attributes = self.attributes(new, range)?;
        let mut locked = Locked::none(&self.pmap.tree);
        locked.lock(self.pmap.tree.at(place, range))?;
        self.fill(&mut locked, range, new, attributes)
    }

    /// Maps all of `range` with these `attributes` if it is free; it is `locked`, and perhaps more.
    #[inline]
    pub(super) fn fill(
        &self,
        locked: &mut Locked<'_, S>,
        range: VaRange,
        new: &New<'_, S>,
        mut attributes: Attributes<S>,
    ) -> Result<bool, Error> {
        let Some(mut part) = locked.only(range) else {
            return self.fill_several(locked, range, new, attributes);
        };
        let is_free = part.make_room_if_free(1)?;
        if is_free {
            self.admit(&part, new, &mut attributes, Usage::NONE, range)?;
            part.set(Some(attributes));
        }
        Ok(is_free)
    }

    /// Maps all of `range` if it is free, in several slots.
    #[inline(never)]
    fn fill_several(
        &self,
        locked: &mut Locked<'_, S>,
        range: VaRange,
        new: &New<'_, S>,
        mut attributes: Attributes<S>,
    ) -> Result<bool, Error> {
        let is_free = Part::make_room_if_all_free(locked.parts_of(range), 1)?;
        if is_free {
            self.admit(locked, new, &mut attributes, Usage::NONE, range)?;
            let parts = locked.parts_of(range);
            parts.for_each(|mut part| part.set(Some(attributes.clone())));
        }
        Ok(is_free)
    }

    /// Counts `new`, with `attributes`, at `range` in the place of `before`, and adds the flags
    /// that the space gives new mappings. The last step that can fail.
    #[inline]
    fn admit(
        &self,
        held: &impl Holding,
        new: &New<'_, S>,
        attributes: &mut Attributes<S>,
        before: Usage,
        range: VaRange,
    ) -> Result<(), Error> {
        debug_assert!(
            attributes
                .attachment
                .as_ref()
                .is_none_or(|to| to.range() == range),
            "an object knows another place of its mapping"
        );
        let rules = self.rules(held);
        attributes.flags = attributes.flags.with(rules.future);
        new.flags.set(attributes.flags);
        if attributes.flags.has(Flags::GROWS_DOWN) {
            self.written.limits.expect_stacks(range.end);
        }
        if rules.are_none() {
            Ok(())
        } else {
            rules.count_new(before, Usage::of(attributes.flags, range.pages()))
        }
    }

    /// The attributes of a mapping of `new` at `range`.
    #[inline]
    pub(super) fn attributes(
        &self,
        new: &New<'_, S>,
        range: VaRange,
    ) -> Result<Attributes<S>, Error> {
        let attach = |(object, first): (&ObjectRef<S>, u64)| {
            // SAFETY: a pmap in an `Arc`, which the space keeps until nothing is mapped in it.
            unsafe { object.attach(Arc::as_ptr(&self.pmap).cast(), range, first) }
        };
        Ok(Attributes {
            flags: new.flags.get(),
            attachment: new.object.map(attach).transpose()?,
        })
    }
}

impl Flags {
    /// Returns true if pages are paged in when the mapping is made or locked.
    pub(super) fn is_brought(self) -> bool {
        self.has(Flags::LOCKED) && !self.has(Flags::ON_FAULT)
    }

    /// These flags, with [`Flags::CHARGED`] if they must be charged: if they are writable and
    /// private.
    pub(super) fn charged(self) -> Self {
        let free = self.has(Flags::SHARED) || self.has(Flags::NO_RESERVE);
        self.with_if(self.prot().writes() && !free, Flags::CHARGED)
    }
}

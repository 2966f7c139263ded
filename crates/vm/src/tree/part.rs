//! A slot that is held, and what an operation wants of it.

use super::extent::{Extent, Rights};
use super::region::Region;
use super::slot::Inside;
use super::{Place, Slot};
use crate::error::Error;
use machine::{Machine, VaRange};

/// A locked slot and the part of a locked range that lies in it.
pub(crate) struct Part<'a, M: Machine> {
    place: Place<'a, M>,
    /// The addresses wanted.
    range: VaRange,
}

impl<'a, M: Machine> Part<'a, M> {
    /// What `range` has of `place`, whose lock is held while this lives.
    pub(super) fn new(place: Place<'a, M>, range: VaRange) -> Self {
        let range = VaRange {
            start: range.start.max(place.range.start),
            end: range.end.min(place.range.end),
        };
        Part { place, range }
    }

    /// The addresses wanted.
    pub(crate) fn range(&self) -> VaRange {
        self.range
    }

    /// The slot.
    pub(crate) fn slot(&self) -> &'a Slot<M> {
        self.place.slot
    }

    /// Pages present in the slot.
    pub(crate) fn resident(&self) -> usize {
        self.place.slot.resident()
    }

    /// The slot has one page more, or less.
    pub(crate) fn add_resident(&mut self, delta: i16) {
        self.place.slot.add_resident(delta);
    }

    /// The slot's table and PV chunks.
    pub(crate) fn inside(&mut self) -> &mut Inside<M> {
        // SAFETY: the slot's lock is held, and this is the holder's only reference.
        unsafe { &mut *self.place.slot.inside() }
    }

    /// Calls `visit` with each mapping in the range, cut to it, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Region)) {
        match self.place.slot.extent() {
            Extent::Empty => {}
            Extent::Whole(rights) => visit(Region::new(self.range, rights)),
            Extent::Parts => {
                // SAFETY: the slot's lock is held, and nothing writes during the visit.
                let parts = unsafe { &(*self.place.slot.inside()).parts };
                for region in parts.overlapping(self.range) {
                    visit(region.cut_to(self.range));
                }
            }
        }
    }

    /// The rights at the range's start, if something is mapped there.
    pub(crate) fn rights(&self) -> Option<Rights> {
        let mut found = None;
        self.for_each(|region| {
            if region.range.start == self.range.start {
                found = Some(region.rights());
            }
        });
        found
    }

    /// Whether all of the range is mapped; else where it is not.
    pub(crate) fn covered(&self) -> Result<(), Error> {
        let mut to = self.range.start;
        self.for_each(|region| {
            if region.range.start == to {
                to = region.range.end;
            }
        });
        if to < self.range.end {
            return Err(Error::NotMapped { address: to });
        }
        Ok(())
    }

    /// Pages in the range that are charged.
    pub(crate) fn charged(&self) -> u64 {
        let mut pages = 0;
        self.for_each(|region| {
            if region.charged {
                pages += region.range.pages() as u64;
            }
        });
        pages
    }

    /// Makes room for one [`Part::set`], which then can not fail.
    pub(crate) fn make_room(&mut self) -> Result<(), Error> {
        if self.is_all() {
            return Ok(());
        }
        self.inside().parts.make_room()
    }

    /// Puts a mapping with these rights, or nothing, in the place of all that is mapped
    /// in the range. There must be room.
    pub(crate) fn set(&mut self, rights: Option<Rights>) {
        let (slot, place, range) = (self.place.slot, self.place.range, self.range);
        let extent = slot.extent();
        if self.is_all() {
            if extent == Extent::Parts {
                self.inside().parts.clear();
            }
            return slot.set_extent(Rights::whole(rights));
        }
        let parts = &mut self.inside().parts;
        if let Extent::Whole(old) = extent {
            parts.replace(place, Some(Region::new(place, old)));
        }
        parts.replace(range, rights.map(|rights| Region::new(range, rights)));
        // What became uniform is said in the slot's byte.
        let uniform = match parts.all() {
            [] => Some(Extent::Empty),
            [one] if one.range == place => Some(Extent::Whole(one.rights())),
            _ => None,
        };
        if uniform.is_some() {
            parts.clear();
        }
        slot.set_extent(uniform.unwrap_or(Extent::Parts));
    }

    /// Whether the range covers all of the slot.
    fn is_all(&self) -> bool {
        self.range == self.place.range
    }
}

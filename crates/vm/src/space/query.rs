//! Queries of mappings.

use super::{HEAP_START, Space, whole_pages};
use crate::error::Error;
use crate::flags::Flags;
use crate::object::{Attached, ObjectId};
use crate::pmap::Entry;
use crate::prot::Prot;
use crate::system::{Op, System};
use crate::tree::Mapped;
use alloc::vec::Vec;
use machine::{PAGE_SIZE, VaRange};

/// A run of addresses that one mapping covers, as tasks see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its addresses.
    pub range: VaRange,
    /// Its flags.
    pub flags: Flags,
    /// The part of an object that is mapped; none if the memory is private and anonymous.
    pub object: Option<MappedObject>,
}

/// The part of an object that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedObject {
    /// The object's identity, valid as long as the object exists.
    pub id: ObjectId,
    /// The offset in the object at which the region begins, in bytes.
    pub offset: u64,
    /// True if it is shared memory without a file.
    pub is_anonymous: bool,
}

impl Region {
    /// The rights of tasks.
    pub fn prot(&self) -> Prot {
        self.flags.prot()
    }

    pub(super) fn of<S: System>(mapped: &Mapped<'_, S>) -> Self {
        let at = mapped.range.start;
        let object = |to: &Attached<S>| MappedObject {
            id: to.object().id(),
            offset: to.index(at) * PAGE_SIZE as u64,
            is_anonymous: to.object().is_anonymous(),
        };
        Region {
            range: mapped.range,
            flags: mapped.flags,
            object: mapped.attachment.map(object),
        }
    }

    /// Joins `next` to this region if it begins where this ends, with equal attributes. Returns
    /// true if it did.
    pub(super) fn absorb(&mut self, next: &Region) -> bool {
        let bytes = self.range.len() as u64;
        let behind = self.object.map(|object| MappedObject {
            offset: object.offset + bytes,
            ..object
        });
        let one =
            self.range.end == next.range.start && self.flags == next.flags && behind == next.object;
        if one {
            self.range.end = next.range.end;
        }
        one
    }
}

impl<S: System> Space<S> {
    /// All regions at one instant, in order: neighbours that are parts of one object in its
    /// order are one, however they were mapped. Locks the whole space: O(slots + regions).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is no memory for the list.
    pub fn regions(&self) -> Result<Vec<Region>, Error> {
        let _op = self.begin(Op::Look);
        let mut locked = self.pmap.tree.all().lock_whole();
        let mut regions: Vec<Region> = Vec::new();
        for part in locked.parts() {
            part.try_for_each(|mapped| {
                let next = Region::of(&mapped);
                let last = regions.last_mut();
                if !last.is_some_and(|last| last.absorb(&next)) {
                    regions.try_reserve(1)?;
                    regions.push(next);
                }
                Ok(())
            })?;
        }
        Ok(regions)
    }

    /// The region of the page at `address`, as of an instant.
    pub fn region_at(&self, address: usize) -> Option<Region> {
        let start = address & !(PAGE_SIZE - 1);
        let end = start.checked_add(PAGE_SIZE)?;
        let page = VaRange { start, end };
        Self::check(page).ok()?;
        let _op = self.begin(Op::Look);
        let mut locked = self.pmap.tree.over(page).lock().ok()?;
        let part = locked.parts().next()?;
        part.first().map(|mapped| Region::of(&mapped))
    }

    /// True for each page of `range` (its end rounded up to pages) that an access would find in
    /// memory, as of an instant.
    pub fn incore(&self, range: VaRange) -> Result<Vec<bool>, Error> {
        let range = Self::in_pages(range)?;
        let mut incore = Vec::new();
        incore.try_reserve_exact(range.pages())?;
        let _op = self.begin(Op::Look);
        self.pmap.tree.find(range.start).refuse_hole(range)?;
        let mut locked = self.pmap.tree.over(range).lock()?;
        for mut part in locked.parts() {
            part.covered()?;
            let range = part.range();
            for address in (range.start..range.end).step_by(PAGE_SIZE) {
                let page = part.cut(VaRange::sized(address, PAGE_SIZE));
                let of_object = page.first().and_then(|mapped| {
                    let attached = mapped.attachment?;
                    attached.object().resident(attached.index(address))
                });
                let mapped = matches!(self.pmap.entry_at(&page), Entry::Page { .. });
                incore.push(mapped || of_object.is_some());
            }
        }
        Ok(incore)
    }

    /// The addresses of the heap.
    pub fn heap(&self) -> VaRange {
        let end = self.current_break();
        VaRange {
            start: HEAP_START,
            end: whole_pages(end).unwrap_or(end),
        }
    }
}

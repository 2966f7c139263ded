//! What is mapped, told.

use super::{HEAP_START, Space, whole_pages};
use crate::object::{Attached, ObjectId};
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::{Flags, Mapped};
use alloc::vec::Vec;
use machine::{PAGE_SIZE, Platform, VaRange};

/// A run of addresses that are mapped alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it is.
    pub range: VaRange,
    /// What it is.
    pub flags: Flags,
    /// What of an object is mapped; nothing if the memory is private and anonymous.
    pub object: Option<MappedObject>,
}

/// What of an object is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedObject {
    /// Which, as long as it lives.
    pub id: ObjectId,
    /// Where in it the region begins, in bytes.
    pub offset: u64,
    /// Whether it is shared memory without a file.
    pub is_anonymous: bool,
}

impl Region {
    /// What tasks may do there.
    pub fn prot(&self) -> Prot {
        self.flags.prot()
    }

    pub(super) fn of<M: Platform, P: Policies<M>>(mapped: &Mapped<'_, M, P>) -> Self {
        let at = mapped.range.start;
        let object = |to: &Attached<M, P>| MappedObject {
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

    /// Makes this region and `next` one if that begins where this ends, and goes on alike.
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

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// All regions at one instant, in order: neighbours that are parts of one object in its
    /// order are one, however they were mapped. Locks the whole space: O(slots + regions).
    pub fn regions(&self) -> Vec<Region> {
        let _read = self.pmap.locking.read();
        let mut locked = self.pmap.tree.lock_all();
        let mut regions: Vec<Region> = Vec::new();
        for part in locked.parts() {
            part.for_each(|mapped| {
                let next = Region::of(&mapped);
                let last = regions.last_mut();
                if !last.is_some_and(|last| last.absorb(&next)) {
                    regions.push(next);
                }
            });
        }
        regions
    }

    /// Where the heap is.
    pub fn heap(&self) -> VaRange {
        let end = self.current_break();
        VaRange {
            start: HEAP_START,
            end: whole_pages(end).unwrap_or(end),
        }
    }
}

//! What is mapped, told.

use super::Space;
use crate::object::ObjectId;
use crate::policy::{MapLocking, Policies};
use crate::prot::Prot;
use crate::tree::Flags;
use alloc::vec::Vec;
use machine::{Platform, VaRange};

/// A run of addresses that are mapped alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it is.
    pub range: VaRange,
    /// What it is.
    pub flags: Flags,
    /// What is mapped if that is an object, and from which of its pages on.
    pub object: Option<(ObjectId, u64)>,
}

impl Region {
    /// What tasks may do there.
    pub fn prot(&self) -> Prot {
        self.flags.prot()
    }

    /// Makes this region and `next`, which begins where it ends, one if they are alike.
    fn absorb(&mut self, next: &Region) -> bool {
        let pages = self.range.pages() as u64;
        let goes_on = Region {
            range: VaRange {
                start: self.range.end,
                end: next.range.end,
            },
            object: self.object.map(|(id, page)| (id, page + pages)),
            ..*self
        };
        let one = goes_on == *next;
        if one {
            self.range.end = next.range.end;
        }
        one
    }
}

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// All regions at one instant, in order. Locks the whole space: O(slots + regions).
    pub fn regions(&self) -> Vec<Region> {
        let _read = self.pmap.locking.read();
        let mut locked = self.pmap.tree.lock_all();
        let mut regions: Vec<Region> = Vec::new();
        for part in locked.parts() {
            part.for_each(|mapped| {
                let start = mapped.range.start;
                let object = mapped
                    .attachment
                    .map(|to| (to.object().id(), to.index(start)));
                let next = Region {
                    range: mapped.range,
                    flags: mapped.flags,
                    object,
                };
                let last = regions.last_mut();
                if !last.is_some_and(|last| last.absorb(&next)) {
                    regions.push(next);
                }
            });
        }
        regions
    }
}

//! What is mapped, told.

use super::Space;
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
}

impl Region {
    /// What tasks may do there.
    pub fn prot(&self) -> Prot {
        self.flags.prot()
    }

    /// Makes this region and `next`, which begins where it ends, one if they are alike.
    fn absorb(&mut self, next: &Region) -> bool {
        let one = self.range.end == next.range.start && self.flags == next.flags;
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
                let next = Region {
                    range: mapped.range,
                    flags: mapped.flags,
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

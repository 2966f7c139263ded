//! Arguments at their edges: nothing, one, the largest number, the ends of the addresses that tasks
//! may map and of those that processors handle, and sums of a place and a length that are at an
//! edge or wrap around.

use super::Generator;
use crate::address::{Address, Origin, PAGE, Range, USER_END};
use crate::model::address;
use crate::step::{Backing, Call, Map, Remap, Where};

/// The numbers around which edges lie.
const EDGES: [u64; 7] = [0, PAGE, 1 << 16, USER_END, 1 << 47, 1 << 63, 1 << 40];

impl Generator<'_> {
    /// The call with one of its numbers moved to an edge.
    pub(super) fn edged(&mut self, call: Call) -> Call {
        match call {
            Call::Map(map) => Call::Map(self.edged_map(map)),
            Call::Remap(remap) => Call::Remap(self.edged_remap(remap)),
            Call::Unmap(it) => Call::Unmap(self.edged_range(it)),
            Call::Protect(it, prot) => Call::Protect(self.edged_range(it), prot),
            Call::Advise(it, advice) => Call::Advise(self.edged_range(it), advice),
            Call::Sync(it, flags) => Call::Sync(self.edged_range(it), flags),
            Call::Lock(it) => Call::Lock(self.edged_range(it)),
            Call::LockOnFault(it) => Call::LockOnFault(self.edged_range(it)),
            Call::Unlock(it) => Call::Unlock(self.edged_range(it)),
            Call::InCore(it) => Call::InCore(self.edged_range(it)),
            Call::Load(_, width) => Call::Load(self.edged_word(), width),
            Call::Store(_, width, value) => Call::Store(self.edged_word(), width, value),
            // The numbers of the others are small anyway: they are drawn from all valid ones.
            other => other,
        }
    }

    fn edged_map(&mut self, map: Map) -> Map {
        let (at, bytes) = (self.edge(), self.edge_from(0));
        let absolute = Address {
            place: Origin::Absolute,
            offset: at,
        };
        match (self.below(3), map.at, map.backing) {
            (0, Where::Fixed(_), _) => Map {
                at: Where::Fixed(absolute),
                ..map
            },
            (0, Where::FixedNoReplace(_), _) => Map {
                at: Where::FixedNoReplace(absolute),
                ..map
            },
            (0, Where::Hint(_, handle), _) => Map {
                at: Where::Hint(absolute, handle),
                ..map
            },
            (
                1,
                _,
                Backing::File {
                    file, read_only, ..
                },
            ) => Map {
                backing: Backing::File {
                    file,
                    offset: self.edge_from(map.bytes),
                    read_only,
                },
                ..map
            },
            (_, Where::Fixed(at) | Where::FixedNoReplace(at) | Where::Hint(at, _), _) => Map {
                bytes: self.edge_from(address(at)),
                ..map
            },
            _ => Map { bytes, ..map },
        }
    }

    fn edged_remap(&mut self, remap: Remap) -> Remap {
        match self.below(4) {
            0 => Remap {
                bytes: self.edge_from(remap.fixed.map_or(0, address)),
                ..remap
            },
            1 if remap.fixed.is_some() => Remap {
                fixed: Some(self.edged_place(remap.bytes)),
                ..remap
            },
            _ => Remap {
                old: self.edged_range(remap.old),
                ..remap
            },
        }
    }

    fn edged_range(&mut self, range: Range) -> Range {
        if self.chance(60) {
            Range {
                bytes: self.edge_from(address(range.start)),
                ..range
            }
        } else {
            Range {
                start: self.edged_place(range.bytes),
                ..range
            }
        }
    }

    /// An address at an edge, or one from which `bytes` bytes end at an edge.
    fn edged_place(&mut self, bytes: u64) -> Address {
        let offset = if self.chance(50) {
            self.edge()
        } else {
            self.edge().wrapping_sub(bytes)
        };
        let place = Origin::Absolute;
        Address { place, offset }
    }

    /// An aligned address at an edge, for an access.
    fn edged_word(&mut self) -> Address {
        let at = self.edged_place(8);
        Address {
            offset: at.offset & !7,
            ..at
        }
    }

    /// A number at an edge, or one whose sum with `start` is at one.
    fn edge_from(&mut self, start: u64) -> u64 {
        let edge = self.edge();
        if self.chance(50) {
            edge
        } else {
            edge.wrapping_sub(start)
        }
    }

    fn edge(&mut self) -> u64 {
        let edge = self.weighted(&EDGES.map(|edge| (1, edge)));
        let apart = self.weighted(&[(3, 0), (2, 1), (2, PAGE), (1, PAGE - 1), (1, PAGE + 1)]);
        if self.chance(50) {
            edge.wrapping_add(apart)
        } else {
            edge.wrapping_sub(apart)
        }
    }
}

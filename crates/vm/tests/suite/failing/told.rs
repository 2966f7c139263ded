//! The state that must be the same after a failure.

use super::World;
use crate::world::{P, in_use};
use machine::VaRange;
use vm::{Flags, Limit, Region, Stats};

/// The state of a space and its VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    mappings: Vec<Mapping>,
    stats: Stats,
    heap_end: usize,
    limits: [Option<usize>; 4],
    /// Pages of swap space that are reserved.
    reserved: u64,
    /// Frames that are not free.
    frames: usize,
    /// Slots of the swap space that are not free.
    slots: u64,
}

/// A region, in terms that are equal in worlds made the same way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mapping {
    range: VaRange,
    flags: Flags,
    /// Where in an object it begins.
    offset: Option<u64>,
}

impl Told {
    /// As it is.
    pub fn by(world: &impl World) -> Self {
        let space = world.space();
        let (frames, reserved, slots, _) = in_use(world.vm());
        let limits = [
            Limit::AddressSpace,
            Limit::Data,
            Limit::Locked,
            Limit::Stack,
        ];
        let mapping = |region: Region| Mapping {
            range: region.range,
            flags: region.flags,
            offset: region.object.map(|object| object.offset),
        };
        Told {
            mappings: space
                .regions()
                .expect("regions")
                .into_iter()
                .map(mapping)
                .collect(),
            stats: Stats {
                in_superpages: 0,
                ..space.stats()
            },
            heap_end: space.current_break(),
            limits: limits.map(|limit| space.limit(limit)),
            reserved,
            frames,
            slots,
        }
    }

    /// The state when all readable pages have been read: then they are in memory.
    pub fn settled(world: &impl World) -> Self {
        super::free_tables(world.vm());
        for region in world.space().regions().expect("regions") {
            let starts = (region.range.start..region.range.end).step_by(P);
            for at in starts.filter(|_| region.prot().reads()) {
                // Behind its object's end there is nothing.
                let _ = world.space().copy_in(at, &mut [0]);
            }
        }
        Told::by(world)
    }

    /// The part that does not change as pages come and go.
    pub fn promised(&self) -> impl PartialEq + std::fmt::Debug + '_ {
        let Told {
            mappings,
            stats,
            heap_end,
            limits,
            reserved,
            ..
        } = self;
        (mappings, stats.usage, heap_end, limits, reserved)
    }

    /// The part of [`Told::promised`] that does not depend on the pages at the beginning.
    pub fn commitments(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let Told {
            stats,
            heap_end,
            limits,
            reserved,
            ..
        } = *self;
        (stats.usage, heap_end, limits, reserved)
    }

    /// The part that does not depend on the addresses that the system has chosen.
    pub fn amounts(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let Told {
            stats,
            heap_end,
            limits,
            reserved,
            frames,
            slots,
            ..
        } = *self;
        // A page that is not mapped may be in either.
        let kept = frames as u64 + slots;
        (stats, heap_end, limits, reserved, kept)
    }

    /// Bytes of the heap that this takes.
    pub fn bytes(&self) -> isize {
        (self.mappings.capacity() * size_of::<Mapping>()) as isize
    }
}

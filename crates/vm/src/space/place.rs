//! The search for room for a mapping.
//!
//! In the usual case the search looks only at the slots that the mapping then takes, whatever else
//! is mapped. When a CPU's arena is exhausted, it goes on with the addresses in no arena, then with
//! those of other CPUs. The last search locks the space, so room is never refused while there is
//! some.
//!
//! Addresses right below a stack are not room: the stack may grow. A stack that is mapped during a
//! search counts as mapped after the search's own mapping.

use super::arena::alignment;
use super::stack::GUARD;
use super::{HIGHEST, MAP_START, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::system::System;
use crate::tree::Place;
use machine::{PAGE_SIZE, VaRange};

impl<S: System> Space<S> {
    /// Maps `bytes` where there is room, and returns where. `take` maps a range, if it is free; a
    /// slot was found at its start.
    pub(super) fn place<'s>(
        &'s self,
        bytes: usize,
        take: &mut impl FnMut(Place<'s, S>, VaRange) -> Result<bool, Error>,
    ) -> Result<usize, Error> {
        debug_assert!(
            bytes > 0 && bytes.is_multiple_of(PAGE_SIZE),
            "a mapping has whole pages"
        );
        let arena = self.arenas.own()?;
        if let Some(hole) = arena.hole(bytes) {
            let found = self.search(hole, bytes, alignment(bytes), take)?;
            let start = found.map_or(hole.end, |at| at + bytes);
            arena.set_hole(VaRange { start, ..hole });
            if let Some(at) = found {
                arena.take(bytes);
                return Ok(at);
            }
        }
        let window = arena.window();
        let ahead = VaRange {
            start: arena.cursor(),
            end: window.end,
        };
        for (range, align) in [(ahead, alignment(bytes)), (window, PAGE_SIZE)] {
            if let Some(at) = self.search(range, bytes, align, take)? {
                arena.take(bytes);
                arena.set_cursor(at + bytes);
                return Ok(at);
            }
        }
        self.place_elsewhere(bytes, take)
    }

    /// Maps `bytes` outside of the CPU's arena.
    #[cold]
    fn place_elsewhere<'s>(
        &'s self,
        bytes: usize,
        take: &mut impl FnMut(Place<'s, S>, VaRange) -> Result<bool, Error>,
    ) -> Result<usize, Error> {
        let unowned = VaRange {
            start: self.arenas.end(),
            end: HIGHEST,
        };
        if let Some(at) = self.search(unowned, bytes, alignment(bytes), take)? {
            return Ok(at);
        }
        loop {
            let at = self.first_gap(bytes).ok_or(Error::NoAddresses { bytes })?;
            // Another task may take it first; then there may be another gap.
            if take(self.pmap.tree.find(at), VaRange::sized(at, bytes))? {
                return Ok(at);
            }
        }
    }

    /// Maps `bytes` at the first place in `range` that is found free. O(slots and
    /// regions passed over). `align` is a power of two.
    fn search<'s>(
        &'s self,
        range: VaRange,
        bytes: usize,
        align: usize,
        take: &mut impl FnMut(Place<'s, S>, VaRange) -> Result<bool, Error>,
    ) -> Result<Option<usize>, Error> {
        debug_assert!(align.is_power_of_two(), "{align} is no alignment");
        let mut from = range.start;
        loop {
            let at = (from + align - 1) & !(align - 1);
            if at > range.end || range.end - at < bytes {
                return Ok(None);
            }
            let here = VaRange::sized(at, bytes);
            let place = self.pmap.tree.find(at);
            let obstacle = self.pmap.tree.obstacle(place, here);
            match obstacle.or_else(|| self.stack_above(here)) {
                // A place that begins before the last obstacle's end would overlap it.
                Some(end) => {
                    debug_assert!(end > from, "a search goes back");
                    from = end;
                }
                None if take(place, here)? => return Ok(Some(at)),
                // Another task was faster: look again, to see its mapping.
                None => {}
            }
        }
    }

    /// The first gap of `bytes` from [`MAP_START`] up, at an instant. O(slots + regions).
    fn first_gap(&self, bytes: usize) -> Option<usize> {
        let mut locked = self.pmap.tree.all().lock_whole();
        let (mut start, mut found) = (MAP_START, None);
        for part in locked.parts() {
            part.for_each(|mapped| {
                let VaRange { start: from, end } = mapped.range;
                if found.is_none() && end > start {
                    let is_stack = mapped.flags.has(Flags::GROWS_DOWN);
                    let room = from.checked_sub(start + if is_stack { GUARD } else { 0 });
                    found = room.is_some_and(|room| room >= bytes).then_some(start);
                    start = end;
                }
            });
        }
        let rest = HIGHEST.saturating_sub(start) >= bytes;
        found.or(rest.then_some(start))
    }
}

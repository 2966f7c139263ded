//! Stacks that grow when they are used.

use super::{HIGHEST, LOWEST, Space};
use crate::error::Error;
use crate::flags::Flags;
use crate::system::{Op, System};
use crate::tree::{Attributes, Locked};
use crate::usage::Usage;
use machine::{PAGE_SIZE, VaRange};

/// The distance that a stack keeps from a mapping below it, and a new mapping from a stack above
/// it: Linux's `stack_guard_gap`.
pub(super) const GUARD: usize = 256 * PAGE_SIZE;

impl<S: System> Space<S> {
    /// Lets the stack above `page`, where nothing is mapped, grow down to it. Returns false if
    /// there is none or it may not grow, and true also if the mappings have changed meanwhile.
    ///
    /// A stack is private anonymous memory with [`Flags::GROWS_DOWN`]. Without one in reach this
    /// takes no lock of an empty slot, and no memory.
    pub(super) fn grow_stack(&self, page: VaRange) -> Result<bool, Error> {
        let limit = self.written.limits.stack();
        let reach = VaRange {
            start: page.end,
            end: page.start.saturating_add(limit).min(HIGHEST),
        };
        let Some(stack) = self.pmap.tree.first_run(reach) else {
            return Ok(false);
        };
        let (end, flags) = (stack.range.end, stack.attributes.flags);
        if !flags.has(Flags::GROWS_DOWN) || end - page.start > limit {
            return Ok(false);
        }
        let grown = VaRange {
            start: page.start,
            end: stack.range.start,
        };
        match self.grow_down(grown, flags) {
            Err(Error::OverLimit(_) | Error::LockLimit | Error::OverCommit { .. }) => Ok(false),
            other => other,
        }
    }

    /// The end of the stack that something at `range` would be too close to, if there is one: the
    /// next mapping above it, less than [`GUARD`] away.
    #[inline]
    pub(super) fn stack_above(&self, range: VaRange) -> Option<usize> {
        if range.end < self.written.limits.end_of_stacks() {
            self.near_stack_above(range)
        } else {
            None
        }
    }

    /// The end of the stack that something at `range` would be too close to, where stacks may be.
    #[cold]
    #[inline(never)]
    fn near_stack_above(&self, range: VaRange) -> Option<usize> {
        let next = self.pmap.tree.first_run(VaRange {
            start: range.end,
            end: range.end.saturating_add(GUARD).min(HIGHEST),
        })?;
        let is_stack = next.attributes.flags.has(Flags::GROWS_DOWN);
        is_stack.then_some(next.range.end)
    }

    /// Maps `grown` like the stack with `flags` at its end.
    fn grow_down(&self, grown: VaRange, flags: Flags) -> Result<bool, Error> {
        debug_assert!(grown.start < grown.end, "a stack does not grow");
        debug_assert!(flags.has(Flags::GROWS_DOWN), "what grows is no stack");
        let around = VaRange {
            start: grown.start.saturating_sub(GUARD).max(LOWEST),
            end: grown.end + PAGE_SIZE,
        };
        let mut op = self.begin(Op::Change);
        let mut locked = self.pmap.tree.over(around).lock()?;
        match surroundings(&mut locked, grown, flags) {
            Surroundings::Clear => {}
            Surroundings::Changed => return Ok(true),
            Surroundings::TooClose => return Ok(false),
        }
        for mut part in locked.parts_of(grown) {
            part.make_room()?;
        }
        self.charging(grown.len(), flags, || {
            let after = Usage::of(flags, grown.pages());
            self.rules(&locked).count_new(Usage::NONE, after)
        })?;
        for mut part in locked.parts_of(grown) {
            part.set(Some(Attributes::private(flags)));
        }
        drop(locked);
        self.report_like(&mut op, grown, &Attributes::private(flags));
        Ok(true)
    }
}

/// The surroundings of a stack that is to grow.
enum Surroundings {
    /// Nothing hinders the growth.
    Clear,
    /// A mapping below is too close.
    TooClose,
    /// The stack that was found before has changed.
    Changed,
}

/// The surroundings in `locked`, which has `grown`, the first page of a stack with `flags` above
/// it, and the guard gap below.
fn surroundings<S: System>(
    locked: &mut Locked<'_, S>,
    grown: VaRange,
    flags: Flags,
) -> Surroundings {
    let (mut below, mut is_free, mut is_there) = (None, true, false);
    for part in locked.parts() {
        part.for_each(|mapped| {
            if mapped.range.start < grown.start {
                below = Some(mapped.flags);
                is_free &= mapped.range.end <= grown.start;
            } else if mapped.range.start < grown.end {
                is_free = false;
            } else {
                is_there = mapped.flags == flags;
            }
        });
    }
    // As in Linux, only the next mapping below matters.
    let hinders = |below: Flags| below.prot().is_accessible() && !below.has(Flags::GROWS_DOWN);
    if !is_free || !is_there {
        Surroundings::Changed
    } else if below.is_some_and(hinders) {
        Surroundings::TooClose
    } else {
        Surroundings::Clear
    }
}

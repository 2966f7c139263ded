//! The heap's end.
//!
//! # Protocol
//! The end is one number without a lock of its own. A move locks the slots of the pages that it
//! maps or unmaps, and the slot of the end's *home*: the last page of the heap, or its first
//! address if the heap is empty ([`Step`]). So moves from one end lock a common slot, and a move
//! that finds the end unchanged with its slots locked is the only one from there; otherwise it
//! begins anew.
//!
//! Many concurrent moves would contend for the slots' locks and cache lines. So a move sets a flag
//! next to the end while it runs, and others wait a while for the end to change before they lock
//! the slots. The flag is a hint: no move relies on it.
//!
//! The end changes when the pages are mapped, or gone from all TLBs, and before the slots are
//! released. So a task that finds the end where it wants it has nothing to do and takes no lock;
//! and a walk that has locked the home's slot knows the end. A fork walks from slot to slot so that
//! no operation overtakes it, and gives the child the end that it finds this way. It sees an
//! earlier move wholly, and a later one not at all: each move locks a slot that the walk holds, or
//! the walk has passed all of its slots. There is one exception: a move back to where a slot ends
//! does not lock that slot, the new end's home. So a fork that has passed a slot of the heap takes
//! the slot's end for the child's until it meets the heap's end.

use super::gate::Guard;
use super::map::New;
use super::unmap::Unmapping;
use super::{HEAP_START, MAP_START, Space, whole_pages};
use crate::error::Error;
use crate::flags::Flags;
use crate::prot::Prot;
use crate::system::{Change, Op, System};
use crate::tree::Place;
use core::cell::Cell;
use machine::{Atomic, Machine, Ordering, PAGE_SIZE, VaRange};

#[cfg(test)]
mod model;

/// The number of times that a move waits for another one to end before it locks the slots, and the
/// length of the first wait. Each further wait is twice as long: two tasks lose little time, and
/// many do not keep the cache line busy.
const LOOKS: u32 = 8;
const PATIENCE: u32 = 50;

/// The address at which a space's heap ends.
pub(super) struct HeapEnd<M: Machine> {
    end: M::AtomicUsize,
    /// 1 while a task moves the end: a hint to others.
    moving: M::AtomicU8,
}

/// A move under way. Dropping any move clears the hint.
struct Moving<'a, M: Machine>(&'a M::AtomicU8);

impl<M: Machine> Drop for Moving<'_, M> {
    fn drop(&mut self) {
        // Relaxed: a hint.
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A move of the heap's end, in bytes.
#[derive(Clone, Copy)]
struct Step {
    old: usize,
    new: usize,
}

impl<M: Machine> HeapEnd<M> {
    /// The end of an empty heap.
    pub(super) fn new() -> Self {
        HeapEnd {
            end: M::AtomicUsize::new(HEAP_START),
            moving: M::AtomicU8::new(0),
        }
    }

    /// The end: exact while its home's slot is locked, otherwise perhaps outdated.
    #[inline]
    pub(super) fn get(&self) -> usize {
        // Acquire: pairs with the release in `set`, so that a move which need do nothing follows
        // the one that did it.
        self.end.load(Ordering::Acquire)
    }

    /// Sets the end, at the end of a move and with its slots locked, or in a space that no task
    /// knows yet.
    #[inline]
    pub(super) fn set(&self, end: usize) {
        debug_assert!(
            (HEAP_START..MAP_START).contains(&end),
            "the heap ends at {end:#x}"
        );
        // Release: pairs with the acquire in `get`.
        self.end.store(end, Ordering::Release);
    }

    /// Begins a move away from `old`. If another task is moving the end, this waits a little, since
    /// that move may be the same, or make this one needless. Returns `None` if the end has changed
    /// meanwhile.
    fn begin(&self, old: usize) -> Option<Moving<'_, M>> {
        for look in 0..LOOKS {
            // Relaxed: a hint.
            if self.moving.load(Ordering::Relaxed) == 0
                && self.moving.swap(1, Ordering::Relaxed) == 0
            {
                return Some(Moving(&self.moving));
            }
            M::delay(PATIENCE << look);
            if self.get() != old {
                return None;
            }
        }
        Some(Moving(&self.moving))
    }
}

/// The address of the page whose slot protects a heap's `end`.
#[inline]
pub(super) fn home(end: usize) -> usize {
    let last = end.saturating_sub(1) & !(PAGE_SIZE - 1);
    last.max(HEAP_START)
}

impl Step {
    /// The range that the move locks.
    fn locked(self) -> VaRange {
        let (home, over) = (home(self.old), self.moved_over());
        VaRange {
            start: home.min(over.start),
            end: over.end.max(home + PAGE_SIZE),
        }
    }

    /// The pages that become part of the heap, or cease to be.
    fn moved_over(self) -> VaRange {
        let [old, new] = [self.old, self.new].map(|end| whole_pages(end).unwrap_or(end));
        VaRange {
            start: old.min(new),
            end: old.max(new),
        }
    }
}

impl<S: System> Space<S> {
    /// The heap's end, in bytes.
    pub fn current_break(&self) -> usize {
        self.written.heap_end.get()
    }

    /// Moves the heap's end, and unmaps the pages above the new one. The heap's pages are mapped as
    /// any others, so faults there need not know its end.
    pub fn set_break(&self, end: usize) -> Result<(), Error> {
        if !(HEAP_START..MAP_START).contains(&end) {
            let reason = "the break is outside of the heap";
            return Err(Error::Invalid { reason });
        }
        if let Some(grown) = self.vm.with_frames(|| self.move_break(end))? {
            self.populate(grown);
        }
        Ok(())
    }

    /// Moves the heap's end; returns the range that it grew by, if that is to be paged in.
    fn move_break(&self, end: usize) -> Result<Option<VaRange>, Error> {
        let mut op = self.begin(Op::Change);
        loop {
            let old = self.current_break();
            if old == end {
                return Ok(None);
            }
            let step = Step { old, new: end };
            let Some(_moving) = self.written.heap_end.begin(old) else {
                continue;
            };
            let place = self.pmap.tree.find(step.locked().start);
            if let Some(flags) = self.try_step(place, step, &mut op)? {
                return Ok(flags.is_brought().then_some(step.moved_over()));
            }
        }
    }

    /// Moves the heap's end and returns the flags of the pages that it grew by; `None` if another
    /// task has moved the end away from where the step begins. `place` was found at the start of
    /// the range that the step locks.
    fn try_step<'a>(
        &'a self,
        place: Place<'a, S>,
        step: Step,
        op: &mut Guard<'a, S>,
    ) -> Result<Option<Flags>, Error> {
        let over = step.moved_over();
        debug_assert!(
            step.locked().contains(home(step.old)) && over.common(step.locked()) == over,
            "a move does not lock all that it changes"
        );
        if over.start == over.end {
            let _locked = self.pmap.tree.at(place, step.locked()).lock()?;
            return Ok(self.begins(step).then(|| self.end(step)));
        }
        if step.new > step.old {
            self.grow_heap(place, step, over, op)
        } else {
            self.shrink_heap(place, step, over, op)
        }
    }

    /// Moves the break by mapping `grown`, which must be free.
    fn grow_heap<'a>(
        &'a self,
        place: Place<'_, S>,
        step: Step,
        grown: VaRange,
        op: &mut Guard<'a, S>,
    ) -> Result<Option<Flags>, Error> {
        let flags = Flags::new(Prot::READ_WRITE).charged();
        let new = New {
            flags: Cell::new(flags),
            object: None,
        };
        let mut locked = self.pmap.tree.at(place, step.locked()).lock()?;
        if !self.begins(step) {
            return Ok(None);
        }
        self.charging(grown.len(), flags, || {
            let bytes = grown.len();
            let attributes = self.attributes(&new, grown)?;
            let filled = self.fill(&mut locked, grown, &new, attributes)?;
            filled.then_some(()).ok_or(Error::NoAddresses { bytes })
        })?;
        self.end(step);
        drop(locked);
        self.report_new(op, grown, &new);
        Ok(Some(new.flags.get()))
    }

    /// Moves the break by unmapping `shrunk`.
    fn shrink_heap<'a>(
        &'a self,
        place: Place<'a, S>,
        step: Step,
        shrunk: VaRange,
        op: &mut Guard<'a, S>,
    ) -> Result<Option<Flags>, Error> {
        self.report(op, Change::Expected(shrunk));
        let mut unmapping = Unmapping::new(self);
        unmapping.lock(place, shrunk)?;
        if !self.begins(step) {
            return Ok(None);
        }
        unmapping.count()?;
        self.report(op, Change::Unmapping(shrunk));
        unmapping.take_pages();
        let left = unmapping.set(None);
        let flags = self.end(step);
        unmapping.release();
        self.report(op, Change::Unmapped(shrunk));
        self.given_back(place, shrunk, left);
        Ok(Some(flags))
    }

    /// Returns true if the heap's end is where the step begins. The step's slots are locked, so it
    /// then stays there.
    fn begins(&self, step: Step) -> bool {
        machine::invariant!(
            S::Machine: self.pmap.tree.find(home(step.old)).slot.is_locked(),
            "the heap's end is looked at without its slot"
        );
        self.current_break() == step.old
    }

    /// Puts the heap's end where the step ends, under the locks of the step's slots; returns the
    /// flags of no page.
    fn end(&self, step: Step) -> Flags {
        machine::invariant!(
            S::Machine: self.begins(step),
            "another task has moved the heap's end"
        );
        self.written.heap_end.set(step.new);
        Flags::NONE
    }
}

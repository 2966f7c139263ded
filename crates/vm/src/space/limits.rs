//! Limits of a space (`setrlimit`), and the memory locks of new mappings.
//!
//! # Protocol
//! Operations on different 2 MiB write no common line, so without a limit nothing is counted.
//! Setting one locks the whole space, sums its usage, and leaves a counter
//! ([`sync::counter::Limited`], in which each CPU has a share of pages). The [`Rules`] are written
//! with all slots locked and read with one, so every operation is either in the sum or finds the
//! counter.
//!
//! An operation counts the difference that it makes under the locks of its slots, as its last step
//! that can fail: other operations can use released pages at once.

use super::Space;
use crate::error::Error;
use crate::flags::Flags;
use crate::heap::try_box;
use crate::system::{Op, System};
use crate::tree::{Holding, Locked};
use crate::usage::{Limit, Usage};
use alloc::boxed::Box;
use machine::{Atomic, CpuRange, Machine, Ordering, PAGE_SIZE, SharedCell, Topology};
use sync::counter::Limited;

/// The size to which a stack grows unless a limit is set.
const STACK: usize = 8 << 20;

/// A space's limits.
pub(super) struct Limits<M: Machine> {
    /// The limit of stacks in bytes; the largest number is no limit. Relaxed: it orders nothing.
    stack: M::AtomicUsize,
    /// No stack ends above this address. The search for room avoids stacks below it. Only grows.
    /// Relaxed: a task that knows of a stack knows this.
    stacks: M::AtomicUsize,
    /// Written with all slots of the space locked, read with one of them locked.
    rules: M::Cell<Rules<M>>,
}

/// The rules for operations that map memory.
pub(super) struct Rules<M: Machine> {
    /// The flags that new mappings get in addition to those requested: [`Flags::LOCKED`],
    /// [`Flags::ON_FAULT`].
    pub(super) future: Flags,
    counters: [Option<Box<Counter<M>>>; 3],
}

/// A limit that is set.
struct Counter<M: Machine> {
    bytes: usize,
    pages: Limited<M>,
}

/// The limits that are set, of those that are counted.
pub(super) type Set = [Option<usize>; 3];

impl<M: Machine> Limits<M> {
    /// The limits of a new space.
    pub(super) fn new() -> Self {
        Limits {
            stack: M::AtomicUsize::new(STACK),
            stacks: M::AtomicUsize::new(0),
            rules: M::Cell::new(Rules {
                future: Flags::NONE,
                counters: [None, None, None],
            }),
        }
    }

    /// The size to which a stack grows, in bytes.
    pub(super) fn stack(&self) -> usize {
        self.stack.load(Ordering::Relaxed)
    }

    /// Notes that there may be stacks that end at `end`, or lower, from now on.
    pub(super) fn expect_stacks(&self, end: usize) {
        let higher = |now| (now < end).then_some(end);
        // Most calls find it high enough, and write nothing.
        let _ = self
            .stacks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, higher);
    }

    /// The address above which no stack ends.
    #[inline]
    pub(super) fn end_of_stacks(&self) -> usize {
        self.stacks.load(Ordering::Relaxed)
    }
}

impl<M: Machine> Rules<M> {
    /// Returns true if no limit is set.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        matches!(self.counters, [None, None, None])
    }

    /// Counts a change from `before` to `after`, unless a limit refuses an increase.
    #[inline]
    pub(super) fn count(&self, before: Usage, after: Usage) -> Result<(), Error> {
        if self.are_none() {
            Ok(())
        } else {
            self.count_limited(before, after)
        }
    }

    #[cold]
    fn count_limited(&self, before: Usage, after: Usage) -> Result<(), Error> {
        let change = |limit: Limit| (limit.count(before), limit.count(after));
        for (nth, (counter, limit)) in self.counters.iter().zip(Limit::COUNTED).enumerate() {
            let (from, to) = change(limit);
            let fits = |counter: &Counter<M>| to <= from || counter.pages.reserve(to - from);
            if !counter.as_deref().is_none_or(fits) {
                self.shrink(nth, |limit| {
                    let (from, to) = change(limit);
                    (to, from)
                });
                return Err(Error::OverLimit(limit));
            }
        }
        self.shrink(self.counters.len(), change);
        Ok(())
    }

    /// Counts a new mapping; new memory that may not be locked is an error of its own.
    #[cold]
    pub(super) fn count_new(&self, before: Usage, after: Usage) -> Result<(), Error> {
        self.count(before, after).map_err(|error| match error {
            Error::OverLimit(Limit::Locked) => Error::LockLimit,
            other => other,
        })
    }

    /// Releases the pages that a change takes away, in the first `counters` counters.
    fn shrink(&self, counters: usize, change: impl Fn(Limit) -> (u64, u64)) {
        for (counter, limit) in self.counters.iter().zip(Limit::COUNTED).take(counters) {
            let (from, to) = change(limit);
            if let Some(counter) = counter.as_deref().filter(|_| to < from) {
                counter.pages.release(from - to);
            }
        }
    }

    /// The limits that are set.
    pub(super) fn set(&self) -> Set {
        let bytes = |counter: &Option<Box<Counter<M>>>| counter.as_ref().map(|c| c.bytes);
        self.counters.each_ref().map(bytes)
    }
}

impl<M: Machine> Counter<M> {
    /// A limit of `bytes`; `used` pages are used already.
    fn new(cpus: CpuRange, bytes: usize, used: u64) -> Result<Box<Self>, Error> {
        let limit = (bytes / PAGE_SIZE) as u64;
        let pages = Limited::try_with_used(cpus, limit, used)?;
        try_box(Counter { bytes, pages })
    }
}

impl<S: System> Space<S> {
    /// Limits the space to `bytes` (rounded down to pages), or lifts the limit.
    ///
    /// Memory beyond the limit stays; nothing is added until it fits. A limit is exact: it is never
    /// exceeded, and nothing that fits is refused. It costs a counter of 128 bytes a CPU; setting
    /// it locks the whole space: O(slots + regions). A limit of stacks counts nothing.
    pub fn set_limit(&self, limit: Limit, bytes: Option<usize>) -> Result<(), Error> {
        if limit == Limit::Stack {
            let bytes = bytes.unwrap_or(usize::MAX);
            self.written.limits.stack.store(bytes, Ordering::Relaxed);
            return Ok(());
        }
        let _op = self.begin(Op::Change);
        let mut locked = self.pmap.tree.all().lock_whole();
        let used = limit.count(locked.parts().map(|part| part.usage()).sum());
        let cpus = self.vm.machine().cpus();
        let counter = bytes.map(|bytes| Counter::new(cpus, bytes, used));
        let counter = counter.transpose()?;
        self.rules_mut(&mut locked).counters[limit as usize] = counter;
        Ok(())
    }

    /// The limit in bytes, if one is set.
    pub fn limit(&self, limit: Limit) -> Option<usize> {
        if limit == Limit::Stack {
            return Some(self.written.limits.stack()).filter(|&bytes| bytes != usize::MAX);
        }
        let mut walk = self.pmap.tree.walk();
        let first = walk.next()?;
        self.rules(&first).set()[limit as usize]
    }

    /// Gives this space, a child's, the limits of its parent.
    pub(super) fn inherit_limits(&self, parent: &Self, set: Set) -> Result<(), Error> {
        let stack = parent.written.limits.stack();
        self.written.limits.stack.store(stack, Ordering::Relaxed);
        let stacks = parent.written.limits.end_of_stacks();
        self.written.limits.expect_stacks(stacks);
        let mut set = set.iter().zip(Limit::COUNTED).filter(|(b, _)| b.is_some());
        set.try_for_each(|(&bytes, limit)| self.set_limit(limit, bytes))
    }

    /// Counts the result of a `change` of the flags of all mappings that are `locked`, unless a
    /// limit refuses it.
    #[inline]
    pub(super) fn count_change(
        &self,
        locked: &mut Locked<'_, S>,
        change: impl Fn(Flags) -> Flags,
    ) -> Result<(), Error> {
        if self.rules(locked).are_none() {
            Ok(())
        } else {
            self.count_change_limited(locked, change)
        }
    }

    #[cold]
    fn count_change_limited(
        &self,
        locked: &mut Locked<'_, S>,
        change: impl Fn(Flags) -> Flags,
    ) -> Result<(), Error> {
        let before = locked.parts().map(|part| part.usage()).sum();
        let after = locked.parts().map(|part| part.usage_if(&change)).sum();
        self.rules(locked).count(before, after)
    }

    /// The rules, under the lock of a slot of this space.
    pub(super) fn rules<'a>(&'a self, _held: &'a impl Holding) -> &'a Rules<S::Machine> {
        // SAFETY: the caller has a slot locked, and they are written with all slots locked.
        unsafe { &*self.written.limits.rules.read() }
    }

    /// Ends the locking of new mappings in memory.
    ///
    /// # Safety
    /// No other task uses the space.
    pub(super) unsafe fn forget_future(&self) {
        // SAFETY: so says the caller.
        unsafe { &mut *self.written.limits.rules.write() }.future = Flags::NONE;
    }

    /// The rules, to change them, with all slots of this space locked.
    pub(super) fn rules_mut<'a>(&'a self, all: &'a mut Locked<'_, S>) -> &'a mut Rules<S::Machine> {
        debug_assert!(all.is_all(), "tasks with other slots read the rules");
        // SAFETY: the caller has all slots locked, and they are read with one locked.
        unsafe { &mut *self.written.limits.rules.write() }
    }
}

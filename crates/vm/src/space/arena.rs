//! Placement of new mappings: the addresses are divided among the CPUs.
//!
//! From [`MAP_START`] up each CPU has an arena of 64 GiB, so CPUs that map and unmap concurrently
//! are in different nodes of the tree. An arena's state is only a hint, on cache lines of its CPU's
//! own: an operation checks under the locks of a place's slots that it is free. So nothing here is
//! locked, and nothing must be exact.
//!
//! - The addresses unmapped last are used again first, so that their tables are: the cursor moves
//!   back over a mapping that ended there; any other place is kept as the hole.
//! - Otherwise the cursor moves on over free addresses, and returns to the arena's start
//!   when it has left much more behind than is mapped.

use super::MAP_START;
use crate::error::Error;
use crate::heap::{filled, try_box};
use alloc::boxed::Box;
use core::{array, ptr};
use machine::{Atomic, CpuRange, Machine, Ordering, PAGE_SIZE, Pinned, VaRange};
use sync::Padded;

/// The size of a CPU's arena in bytes: a multiple of a node's.
const ARENA: usize = 64 << 30;
/// Bytes that the cursor may leave behind in addition to a few times the mapped bytes.
const SLACK: usize = 1 << 30;

/// Pointers that fill the lines of a [`Padded`].
const IN_LINES: usize = 16;

/// The bytes that a leaf table covers.
pub(super) const TABLE: usize = 2 << 20;
/// The bytes that a node's smallest slots cover together.
const NODE: usize = 128 << 20;

/// The arenas of a space, made when their CPU first maps something.
pub(super) struct Arenas<M: Machine> {
    cpus: CpuRange,
    /// An [`Arena`] for each CPU, or null. Written once each; on lines of the space's own.
    arenas: Box<[Padded<[M::AtomicPtr; IN_LINES]>]>,
}

/// One CPU's addresses. Written by that CPU's tasks; relaxed, since hints order nothing.
pub(super) struct Arena<M: Machine> {
    window: VaRange,
    /// The address from which to look first for room that was never used.
    cursor: M::AtomicUsize,
    /// Room that was unmapped below the cursor; empty if there is none.
    hole_start: M::AtomicUsize,
    hole_end: M::AtomicUsize,
    /// Bytes mapped, less those this CPU unmapped.
    mapped: M::AtomicUsize,
    /// Slots that this CPU has left empty lately, or 0; and which of them is the next to be
    /// forgotten.
    vacated: [M::AtomicUsize; VACATED],
    oldest: M::AtomicUsize,
}

/// Empty slots that a CPU remembers.
const VACATED: usize = 8;

impl<M: Machine> Arenas<M> {
    /// Arenas for `cpus`, none of them made.
    pub(super) fn new(cpus: CpuRange) -> Result<Self, Error> {
        let none = || Padded(array::from_fn(|_| M::AtomicPtr::new(ptr::null_mut())));
        let arenas = filled(cpus.len().div_ceil(IN_LINES), none)?;
        M::label(arenas.as_ptr().cast(), size_of_val(&*arenas), "Arenas");
        Ok(Arenas { cpus, arenas })
    }

    /// The calling CPU's arena.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the machine.
    pub(super) fn own(&self) -> Result<&Arena<M>, Error> {
        let index = self.cpus.index_of(M::pin().cpu());
        match self.of(index) {
            Some(arena) => Ok(arena),
            None => self.make(index),
        }
    }

    /// Takes over the hints of `others`, whose mappings this space has inherited.
    pub(super) fn follow(&self, others: &Self) -> Result<(), Error> {
        for index in 0..self.cpus.len() {
            if let Some(other) = others.of(index) {
                self.make(index)?.follow(other);
            }
        }
        Ok(())
    }

    /// Notes that the calling CPU has unmapped `range`.
    pub(super) fn unmapped(&self, range: VaRange) {
        let index = self.cpus.index_of(M::pin().cpu());
        if let Some(arena) = self.of(index)
            && arena.window.start <= range.start
            && range.end <= arena.window.end
        {
            arena.give(range);
        }
    }

    /// Notes that the calling CPU has left the slot of 2 MiB at `address` empty, if it has an
    /// arena. Returns the slot that it forgets instead, whose table is not worth keeping.
    pub(super) fn vacated(&self, address: usize) -> Option<usize> {
        let index = self.cpus.index_of(M::pin().cpu());
        self.of(index)?.vacate(address)
    }

    /// The first address that is in no arena.
    pub(super) fn end(&self) -> usize {
        MAP_START + self.cpus.len() * ARENA
    }

    fn place(&self, index: usize) -> &M::AtomicPtr {
        match self.arenas.get(index / IN_LINES) {
            Some(line) => &line.0[index % IN_LINES],
            None => no_cpu(),
        }
    }

    fn of(&self, index: usize) -> Option<&Arena<M>> {
        // Acquire: pairs with the release in `make`.
        let arena = self.place(index).load(Ordering::Acquire).cast::<Arena<M>>();
        // SAFETY: an arena that was published stays until `self` is dropped.
        unsafe { arena.as_ref() }
    }

    #[cold]
    fn make(&self, index: usize) -> Result<&Arena<M>, Error> {
        let window = VaRange::sized(MAP_START + index * ARENA, ARENA);
        let made: *mut Padded<Arena<M>> = Box::into_raw(try_box(Padded(Arena::new(window)))?);
        // Release: a task that finds the arena finds it whole. Another task on this CPU may have
        // been faster.
        let won = self.place(index).compare_exchange(
            ptr::null_mut(),
            made.cast(),
            Ordering::Release,
            Ordering::Acquire,
        );
        match won {
            Ok(_) => M::label(made.cast(), size_of::<Padded<Arena<M>>>(), "Arena"),
            // SAFETY: made above, and no task has seen it.
            Err(_) => drop(unsafe { Box::from_raw(made) }),
        }
        Ok(self.of(index).expect("there is one now"))
    }
}

impl<M: Machine> Drop for Arenas<M> {
    fn drop(&mut self) {
        for index in 0..self.cpus.len() {
            let arena = self
                .place(index)
                .load(Ordering::Relaxed)
                .cast::<Padded<Arena<M>>>();
            if !arena.is_null() {
                // SAFETY: a box from `make`; no other user is left.
                drop(unsafe { Box::from_raw(arena) });
            }
        }
    }
}

impl<M: Machine> Arena<M> {
    fn new(window: VaRange) -> Self {
        Arena {
            window,
            cursor: M::AtomicUsize::new(window.start),
            hole_start: M::AtomicUsize::new(0),
            hole_end: M::AtomicUsize::new(0),
            mapped: M::AtomicUsize::new(0),
            vacated: array::from_fn(|_| M::AtomicUsize::new(0)),
            oldest: M::AtomicUsize::new(0),
        }
    }

    /// Remembers the slot at `address`, and returns the one that it forgets instead, if there is
    /// one.
    fn vacate(&self, address: usize) -> Option<usize> {
        debug_assert!(
            address.is_multiple_of(TABLE),
            "no slot begins at {address:#x}"
        );
        // A place of 0 is free: the first slot is never remembered.
        if address == 0 {
            return Some(address);
        }
        let mut known = self.vacated.iter().map(|at| at.load(Ordering::Relaxed));
        if known.any(|at| at == address) {
            return None;
        }
        let oldest = self.oldest.load(Ordering::Relaxed);
        self.oldest.store((oldest + 1) % VACATED, Ordering::Relaxed);
        let forgotten = self.vacated[oldest].swap(address, Ordering::Relaxed);
        (forgotten != 0).then_some(forgotten)
    }

    fn follow(&self, other: &Self) {
        debug_assert_eq!(self.window, other.window, "another CPU's arena is followed");
        let load = |word: &M::AtomicUsize| word.load(Ordering::Relaxed);
        self.set_cursor(load(&other.cursor));
        self.mapped.store(load(&other.mapped), Ordering::Relaxed);
        self.set_hole(VaRange {
            start: load(&other.hole_start),
            end: load(&other.hole_end),
        });
    }

    /// All of its addresses.
    pub(super) fn window(&self) -> VaRange {
        self.window
    }

    /// The addresses unmapped last, if they have room for `bytes`.
    pub(super) fn hole(&self, bytes: usize) -> Option<VaRange> {
        let start = self.hole_start.load(Ordering::Relaxed);
        let end = self.hole_end.load(Ordering::Relaxed);
        (start < end && end - start >= bytes).then_some(VaRange { start, end })
    }

    /// Sets the rest of the hole.
    pub(super) fn set_hole(&self, hole: VaRange) {
        self.hole_start.store(hole.start, Ordering::Relaxed);
        self.hole_end.store(hole.end, Ordering::Relaxed);
    }

    /// The address from which to look for room, if not in the hole.
    pub(super) fn cursor(&self) -> usize {
        let cursor = self.cursor.load(Ordering::Relaxed);
        let behind = cursor - self.window.start;
        let bound = self.mapped.load(Ordering::Relaxed).saturating_mul(4);
        if behind > bound.saturating_add(SLACK) {
            return self.window.start;
        }
        cursor
    }

    /// Moves the cursor behind a new mapping.
    pub(super) fn set_cursor(&self, cursor: usize) {
        debug_assert!(
            self.window.start <= cursor && cursor <= self.window.end,
            "{cursor:#x} is in another CPU's arena"
        );
        self.cursor.store(cursor, Ordering::Relaxed);
    }

    /// Counts `bytes` that have been mapped here.
    pub(super) fn take(&self, bytes: usize) {
        let mapped = self.mapped.load(Ordering::Relaxed);
        self.mapped.store(mapped + bytes, Ordering::Relaxed);
    }

    /// Notes that `range` has been unmapped.
    fn give(&self, range: VaRange) {
        debug_assert!(
            range.start < range.end && range.common(self.window) == range,
            "{range:?} is not the arena's"
        );
        let mapped = self.mapped.load(Ordering::Relaxed);
        let left = mapped.saturating_sub(range.len());
        self.mapped.store(left, Ordering::Relaxed);
        if self.cursor.load(Ordering::Relaxed) == range.end {
            self.set_cursor(range.start);
        } else {
            self.set_hole(range);
        }
    }
}

#[cold]
#[inline(never)]
fn no_cpu() -> ! {
    panic!("the caller runs on no CPU of the space's machine")
}

/// The alignment of a mapping of `bytes`, so that it shares no table, or no node, with
/// its neighbours if it fills one.
pub(super) fn alignment(bytes: usize) -> usize {
    match bytes {
        NODE.. => NODE,
        TABLE.. => TABLE,
        _ => PAGE_SIZE,
    }
}

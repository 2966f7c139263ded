//! The table of slots, and its counts.

use super::slot::{Slot, Word};
use crate::error::Error;
use crate::heap::filled;
use alloc::boxed::Box;
use core::array;
use core::ops::Range;
use machine::{
    Atomic, AtomicInt, Atomics, CpuRange, Frame, Ordering, PAGE_SIZE, Pager, PagerError, Platform,
};
use sync::sleepq::{Hashed, SleepQueue};
use sync::{Padded, PerCpu};

/// Slots in a [`Region`]: two full clusters.
pub(super) const REGION: usize = 64;

/// A store of pages, cut into slots that are counted and cached.
///
/// 8 bytes a slot, a byte for 64 slots, and 128 a CPU. See the [module](super) for the protocol.
/// Every operation is for tasks on CPUs of the machine; an operation on a slot that does not exist
/// panics. A VM takes the space that it is given for its own ([`crate::Options::swap_space`]), so
/// no caller can change the accounts of slots that are in use.
pub struct SwapSpace<M: Platform> {
    pager: Box<dyn Pager<M>>,
    slots: u32,
    table: Box<[Region<M>]>,
    /// A hint for each region, see [`super::allocate`], and padding.
    pub(super) hints: Box<[M::AtomicU8]>,
    pub(super) own: PerCpu<Own<M>, M>,
    /// Tasks that wait for a slot that is busy.
    waiting: Hashed<M>,
}

/// Counts of a swap space's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapSlots {
    /// All slots.
    pub slots: u32,
    /// Those that are not free; exact while no task takes or frees any.
    pub used: u64,
    /// Those with a frame in the cache; exact while that does not change.
    pub cached: u64,
}

/// The unit that a CPU carves runs from: slots on lines of their own.
#[repr(align(128))]
struct Region<M: Platform>([Slot<M>; REGION]);

/// One CPU's part. Written by that CPU, read by all.
pub(super) struct Own<M: Atomics> {
    /// The region the CPU carves from, or [`super::allocate::NOWHERE`].
    pub(super) region: M::AtomicUsize,
    /// Slots this CPU has taken; counted after they are.
    pub(super) allocated: M::AtomicU64,
    /// Slots this CPU has freed; counted after they are.
    pub(super) freed: M::AtomicU64,
    /// Frames this CPU has put into the cache, less those it took out; wraps.
    cached: M::AtomicU64,
}

impl<M: Platform> SwapSpace<M> {
    /// The first `slots` pages of `pager` as swap space of the machine with these CPUs, all
    /// of them free. O(slots).
    ///
    /// # Errors
    /// If the kernel's heap has no room for the table.
    pub fn new(cpus: CpuRange, pager: Box<dyn Pager<M>>, slots: u32) -> Result<Self, Error> {
        let regions = (slots as usize).div_ceil(REGION);
        // Whole lines: a smaller block would share its own with data that one CPU writes.
        let hints = regions.next_multiple_of(align_of::<Padded<()>>());
        let space = SwapSpace {
            pager,
            slots,
            table: filled(regions, || Region(array::from_fn(|_| Slot::new())))?,
            hints: filled(hints, || M::AtomicU8::new(0))?,
            own: PerCpu::try_new(cpus, |_| Own::new())?,
            waiting: Hashed::new(),
        };
        M::label_value(&*space.table, "SwapSpace.table");
        M::label_value(&*space.hints, "SwapSpace.hints");
        space.own.label("SwapSpace.own");
        Ok(space)
    }

    /// The CPUs of its machine.
    pub(crate) fn cpus(&self) -> CpuRange {
        self.own.cpus()
    }

    /// Its counts.
    pub(crate) fn counts(&self) -> SwapSlots {
        SwapSlots {
            slots: self.slots(),
            used: self.used(),
            cached: self.cached(),
        }
    }

    /// The number of regions.
    pub(super) fn regions(&self) -> usize {
        self.table.len()
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots that are not free; exact while no task takes or frees any. O(CPUs).
    pub fn used(&self) -> u64 {
        // In this order: each freed slot was taken before.
        let freed = self.freed();
        self.allocated().saturating_sub(freed)
    }

    /// Slots with a frame in the cache; exact while that does not change. O(CPUs).
    pub fn cached(&self) -> u64 {
        self.sum(|own| own.cached.load(Ordering::Relaxed))
    }

    /// Adds a reference to a slot: one more page-table entry holds its number. The caller
    /// has a reference, or locks an entry that has.
    ///
    /// # Panics
    /// If it has none, or beyond 2²⁸ references.
    #[inline]
    pub fn retain(&self, slot: u32) {
        self.slot(slot).retain();
    }

    /// Adds a reference if `frame` is in the slot's cache, another has a reference, and no task
    /// is busy with the slot; by a caller that holds the frame's page.
    pub fn retain_if(&self, slot: u32, frame: Frame) -> bool {
        let here = |word: Word| {
            let known = word.frame() == Some(frame) && word.references() > 0;
            (known && !word.is_busy()).then(|| word.retained())
        };
        self.change(slot, here).is_some()
    }

    /// Drops a reference. With the last the slot becomes free; if it was cached, this returns its
    /// frame, and the cache's reference to the page is the caller's.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use = "the cache's reference of the page is the caller's"]
    pub fn release(&self, slot: u32) -> Option<Frame> {
        let (old, new) = self.change(slot, |word| Some(word.released()))?;
        old.frame().filter(|_| new == Word::FREE)
    }

    /// The number of references that the slot had a moment ago; if it is 1, its owner is alone.
    pub fn references(&self, slot: u32) -> u32 {
        self.slot(slot).load().references()
    }

    /// Returns true if the slot's content is cached in `frame`. A fault checks this again when it
    /// has locked its page-table entry, unless it had a reference to the slot all the time.
    pub fn holds(&self, slot: u32, frame: Frame) -> bool {
        self.slot(slot).load().frame() == Some(frame)
    }

    /// Writes `frames` to consecutive slots from `first` on; the caller has a reference to each.
    /// May block.
    ///
    /// # Errors
    /// If the pager fails; then the content of these slots is undefined.
    ///
    /// # Safety
    /// As for [`Pager::write`].
    pub unsafe fn write(
        &self,
        machine: &M,
        first: u32,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        self.check(first, frames.len());
        let bytes = frames.len() * PAGE_SIZE;
        // SAFETY: so says the caller.
        unsafe { self.pager.write(machine, first.into(), frames, bytes) }
    }

    /// Fills `frames` from slots as [`SwapSpace::write`] writes them; by a caller that has the
    /// right to read each of them in ([`super::Loading`]), or owns it.
    ///
    /// # Safety
    /// As for [`Pager::read`].
    pub(crate) unsafe fn read(
        &self,
        machine: &M,
        first: u32,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        self.check(first, frames.len());
        // SAFETY: so says the caller.
        unsafe { self.pager.read(machine, first.into(), frames) }
    }

    /// Panics if the run goes beyond the last slot: the pager may have other pages behind it.
    fn check(&self, first: u32, count: usize) {
        let end = first as usize + count;
        assert!(end <= self.slots as usize, "no swap slot {}", end - 1);
    }

    #[inline]
    pub(super) fn slot(&self, slot: u32) -> &Slot<M> {
        assert!(slot < self.slots, "no swap slot {slot}");
        &self.table[slot as usize / REGION].0[slot as usize % REGION]
    }

    /// The slots of a region, and their numbers.
    pub(super) fn region(&self, region: usize) -> (&[Slot<M>], Range<u32>) {
        debug_assert!(region < self.regions(), "there is no region {region}");
        let first = (region * REGION) as u32;
        let count = REGION.min((self.slots - first) as usize);
        (&self.table[region].0[..count], first..first + count as u32)
    }

    /// Changes the slot's word ([`Slot::change`]), wakes waiters, and counts.
    #[inline]
    pub(super) fn change(
        &self,
        slot: u32,
        next: impl Fn(Word) -> Option<Word>,
    ) -> Option<(Word, Word)> {
        let place = self.slot(slot);
        let (old, new) = place.change(next)?;
        if old.has_waiters() && !new.has_waiters() {
            self.waiting.wake(place.key(), usize::MAX);
        }
        if old.frame().is_some() != new.frame().is_some() || new == Word::FREE {
            self.count(slot, old, new);
        }
        Some((old, new))
    }

    fn count(&self, slot: u32, old: Word, new: Word) {
        let own = self.own.get(&M::pin());
        debug_assert!(!old.is_free(), "a slot is freed twice");
        let cached = u64::from(new.frame().is_some());
        let change = cached.wrapping_sub(u64::from(old.frame().is_some()));
        own.cached.fetch_add(change, Ordering::Relaxed);
        if new == Word::FREE {
            self.has_free(slot as usize / REGION);
            // Release: pairs with the acquire in `sum`; a task that sees it counted sees it free.
            own.freed.fetch_add(1, Ordering::Release);
        }
    }

    /// Counts `count` slots that the calling CPU has taken, `cached` of them with a page in the
    /// cache.
    pub(super) fn count_allocated(&self, count: u64, cached: u64) {
        debug_assert!(cached <= count, "more slots are cached than taken");
        let own = self.own.get(&M::pin());
        own.cached.fetch_add(cached, Ordering::Relaxed);
        // Release: as in `count`.
        own.allocated.fetch_add(count, Ordering::Release);
    }

    /// Sleeps until no task is busy with the slot, or returns a little earlier.
    pub(super) fn wait(&self, slot: u32) {
        let slot = self.slot(slot);
        self.waiting.sleep(slot.key(), || slot.wait());
    }

    /// The number of slots that were ever taken.
    pub(super) fn allocated(&self) -> u64 {
        self.sum(|own| own.allocated.load(Ordering::Acquire))
    }

    /// The number of slots that were ever freed.
    pub(super) fn freed(&self) -> u64 {
        self.sum(|own| own.freed.load(Ordering::Acquire))
    }

    fn sum(&self, count: impl Fn(&Own<M>) -> u64) -> u64 {
        self.own.iter().map(count).fold(0, u64::wrapping_add)
    }
}

impl<M: Atomics> Own<M> {
    fn new() -> Self {
        Own {
            region: M::AtomicUsize::new(super::allocate::NOWHERE),
            allocated: M::AtomicU64::new(0),
            freed: M::AtomicU64::new(0),
            cached: M::AtomicU64::new(0),
        }
    }
}

//! Allocation of slots.
//!
//! Pages that are written together go to neighbouring slots, in one write; CPUs that swap out
//! concurrently write no common line of the table. So each CPU has a *region* of 64 slots to
//! itself, from which it carves runs; when that has no run of the requested length it moves on to
//! the next that no CPU has. If a few of these are too fragmented, or there are none, it takes free
//! slots anywhere, other CPUs' regions included.
//!
//! A byte for each region records that a CPU has it, and that it seemed to be full. It is only a
//! hint where to look first: a slot is free if its word is 0, and a task takes it by exchanging
//! that word.
//!
//! # Why a refusal is exact
//! Looking at each word once proves nothing: a slot may be freed behind the search while
//! another is taken ahead of it, and there was a free one all the time. But a slot is counted
//! as freed after it is free. If as many were freed after the search as before it, then
//! words only went from free to taken meanwhile, but for releases that have not returned: at
//! the end of the search none was free. Otherwise the search begins anew.
//!
//! On weakly ordered CPUs too: a task that finds a slot taken has acquired all that its owner had
//! when it took it, so that if its owner knew of a slot freed before, the second count has it.

use super::slot::{Slot, Word};
use super::space::{Own, REGION, SwapSpace};
use core::ops::Range;
use machine::{Atomic, AtomicInt, Frame, Ordering, Platform};

/// The most slots one [`SwapSpace::allocate`] gives.
pub const CLUSTER: usize = 32;

/// The number of regions that are searched for a whole run.
const TRIES: usize = 16;
/// A CPU without a region.
pub(super) const NOWHERE: usize = usize::MAX;

/// In a region's byte: a CPU carves from it.
const TAKEN: u8 = 1 << 0;
/// In a region's byte: it had no free slot when a CPU left it.
const FULL: u8 = 1 << 1;

impl<M: Platform> SwapSpace<M> {
    /// Takes neighbouring slots for the first of `frames`, for as many as were found and at
    /// most [`CLUSTER`]: the first slot is that of the first frame. Each has one reference,
    /// which is the caller's, and its frame in the cache, to which the caller gives a
    /// reference of each of these pages. `None` if no slot is free; that is exact.
    ///
    /// O(1) in the usual case: a few lines of the CPU's own region. O(regions) where these are
    /// fragmented, O(slots) at most.
    #[must_use = "a slot that is not released is lost"]
    pub fn allocate(&self, frames: &[Frame]) -> Option<Range<u32>> {
        let frames = &frames[..frames.len().min(CLUSTER)];
        let slots = self.take(frames.len(), |index| Word::cached(frames[index]))?;
        debug_assert!(
            slots.len() <= frames.len(),
            "more slots are taken than wanted"
        );
        let taken = slots.len() as u64;
        self.count_allocated(taken, taken);
        Some(slots)
    }

    /// Takes a slot that has no part in the cache, with one reference, for an owner that finds its
    /// page by itself and lets one task at a time read or write it. Look-ups of private memory with
    /// an old number find it gone. `None` if no slot is free; that is exact. As fast as
    /// [`SwapSpace::allocate`].
    #[must_use = "a slot that is not released is lost"]
    pub fn reserve(&self) -> Option<u32> {
        let slots = self.take(1, |_| Word::OWNED)?;
        self.count_allocated(1, 0);
        Some(slots.start)
    }

    /// Takes `count` neighbouring slots, or fewer but at least one, and sets their words.
    #[inline]
    fn take(&self, count: usize, word: impl Fn(usize) -> Word) -> Option<Range<u32>> {
        if count == 0 {
            return Some(0..0);
        }
        self.carve(count, &word)
            .or_else(|| self.anywhere(count, &word))
    }

    /// Notes that a slot of this region has been freed.
    #[inline]
    pub(super) fn has_free(&self, region: usize) {
        let hint = &self.hints[region];
        if hint.load(Ordering::Relaxed) & FULL != 0 {
            hint.fetch_and(!FULL, Ordering::Relaxed);
        }
    }

    /// Takes a whole run from the CPU's region, or from one of the next.
    #[inline]
    fn carve(&self, count: usize, word: &impl Fn(usize) -> Word) -> Option<Range<u32>> {
        let pin = M::pin();
        let own = self.own.get(&pin);
        let region = own.region.load(Ordering::Relaxed);
        let run = self.whole_run(region, count, word);
        run.or_else(|| self.carve_next(own, region, self.home(&pin), count, word))
    }

    /// Takes a whole run from one of the next regions, when `region` has none.
    #[inline(never)]
    fn carve_next(
        &self,
        own: &Own<M>,
        mut region: usize,
        home: usize,
        count: usize,
        word: &impl Fn(usize) -> Word,
    ) -> Option<Range<u32>> {
        for _ in 1..TRIES {
            region = self.move_on(own, region, home);
            if region == NOWHERE {
                break;
            }
            let run = self.whole_run(region, count, word);
            if run.is_some() {
                return run;
            }
        }
        None
    }

    /// Takes `count` slots of a region; fewer if another CPU interferes.
    #[inline]
    fn whole_run(
        &self,
        region: usize,
        count: usize,
        word: &impl Fn(usize) -> Word,
    ) -> Option<Range<u32>> {
        if region == NOWHERE {
            return None;
        }
        let (slots, numbers) = self.region(region);
        let mut free = 0;
        for (index, slot) in slots.iter().enumerate() {
            free = if slot.load().is_free() { free + 1 } else { 0 };
            if free == count {
                let first = index + 1 - free;
                return Self::claim(&slots[first..], numbers.start + first as u32, count, word);
            }
        }
        None
    }

    /// Takes slots from the first of `slots` on, whose number is `first`: as many as are free, and
    /// `count` at most.
    #[inline]
    fn claim(
        slots: &[Slot<M>],
        first: u32,
        count: usize,
        word: &impl Fn(usize) -> Word,
    ) -> Option<Range<u32>> {
        debug_assert!(
            0 < count && count <= CLUSTER,
            "{count} slots are wanted at once"
        );
        let both = slots.iter().zip(0..count);
        let taken = both.take_while(|&(slot, index)| slot.claim(word(index)));
        let taken = taken.count() as u32;
        (taken > 0).then(|| first..first + taken)
    }

    /// Gives up `region` for the next one that no CPU has and that does not seem full.
    fn move_on(&self, own: &Own<M>, region: usize, home: usize) -> usize {
        let next = if region == NOWHERE {
            home
        } else {
            self.leave(region);
            region + 1
        };
        let vacant = |region: &usize| {
            let hint = &self.hints[*region];
            // Relaxed: a hint.
            hint.load(Ordering::Relaxed) == 0
                && hint
                    .compare_exchange(0, TAKEN, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
        };
        let found = self.from(next).find(vacant).unwrap_or(NOWHERE);
        own.region.store(found, Ordering::Relaxed);
        found
    }

    fn leave(&self, region: usize) {
        let (slots, _) = self.region(region);
        let full = !slots.iter().any(|slot| slot.load().is_free());
        let hint = if full { FULL } else { 0 };
        self.hints[region].store(hint, Ordering::Relaxed);
    }

    /// Takes free slots anywhere, beginning with regions that do not seem full.
    #[cold]
    fn anywhere(&self, count: usize, word: &impl Fn(usize) -> Word) -> Option<Range<u32>> {
        let home = self.home(&M::pin());
        let seems_full = |region: usize| self.hints[region].load(Ordering::Relaxed) & FULL != 0;
        loop {
            let freed = self.freed();
            let all_used = self.allocated().wrapping_sub(freed) >= self.slots().into();
            if !all_used {
                let hopeful = self.from(home).filter(|&region| !seems_full(region));
                let others = self.from(home).filter(|&region| seems_full(region));
                let mut regions = hopeful.chain(others);
                if let Some(found) = regions.find_map(|region| self.any_run(region, count, word)) {
                    self.has_free(found.start as usize / REGION);
                    return Some(found);
                }
            }
            if self.freed() == freed {
                return None;
            }
        }
    }

    /// Takes the first slots of a region that are free.
    fn any_run(
        &self,
        region: usize,
        count: usize,
        word: &impl Fn(usize) -> Word,
    ) -> Option<Range<u32>> {
        let (slots, numbers) = self.region(region);
        let mut free = numbers
            .zip(0..)
            .filter(|&(_, index)| slots[index].load().is_free());
        free.find_map(|(number, index)| Self::claim(&slots[index..], number, count, word))
    }

    /// The region at which the CPU begins; CPUs begin at different ones.
    fn home(&self, pin: &M::Pin) -> usize {
        self.own.index(pin) * self.regions() / self.own.cpus().len()
    }

    /// All regions, beginning with this one.
    fn from(&self, first: usize) -> impl Iterator<Item = usize> + use<M> {
        let count = self.regions();
        (first..count).chain(0..first.min(count))
    }
}

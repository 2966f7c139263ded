//! Physical frames: per-CPU caches over pools.
//!
//! Each CPU keeps two stacks of free frames, *zeroed* and *plain*, and touches no
//! other line until one runs empty or full; then a batch moves from or to a
//! pool, in runs of frames whose descriptors share no line with others. A frame that is
//! free and known to be all zero stays known as such, so page tables, which are empty when
//! they are freed, are never zeroed twice, and [`Frames::zero_ahead`] can do a fault's
//! zeroing in idle time.
//!
//! Each pool has a part of memory, and eight CPUs that take from it first. Frames go back where
//! they came from, so CPUs that free their own frames contend with at most seven others, however
//! many CPUs the machine has ([`pools`]). In other systems each NUMA node has a pool
//! ([`FramePools`]).
//!
//! A pool keeps blocks of 2 MiB together as long as it can, and gives them out whole:
//! [`Frames::allocate_block`]. A frame in a CPU's cache keeps its block broken until
//! [`Frames::drain`].
//!
//! A request is never refused while a frame is free: when all pools are empty the caller takes from
//! the other CPUs' caches, and then breaks reservations up ([`reservation`]).

mod block;
mod cache;
mod failures;
mod map;
#[cfg(test)]
mod model;
mod pool;
mod pools;
mod reservation;

use crate::error::Error;
use crate::lock::CacheLock;
use crate::system::FramePools;
use block::BLOCK;
use cache::{BATCH, Cache};
use core::iter;
use failures::Failures;
use machine::{Frame, Memory, PAGE_SIZE, Platform};
use map::Map;
use pools::Pools;
use reservation::Reservations;
use sync::PerCpu;

/// Frames in a run, which the pool hands out together.
pub(crate) const RUN: usize = 8;

/// The content a frame must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// All zero.
    Zeroed,
    /// Anything; the caller overwrites it.
    Any,
}

/// The allocator.
pub struct Frames<M: Platform> {
    caches: PerCpu<CacheLock<M, Cache>, M>,
    /// Free frames that are in no cache.
    pools: Pools<M>,
    reservations: Reservations<M>,
    map: Map,
    failures: Failures<M>,
}

impl<M: Platform> Frames<M> {
    /// All frames that `machine` hands over, free and of unknown content.
    ///
    /// # Errors
    /// If the kernel's heap has no room, or the machine's memory map is wrong.
    pub fn new(machine: &M) -> Result<Self, Error> {
        Self::with_pools(machine, FramePools::default())
    }

    /// All frames that `machine` hands over, free and of unknown content, in these pools.
    ///
    /// # Errors
    /// If the kernel's heap has no room, or the machine's memory map is wrong.
    pub fn with_pools(machine: &M, pools: FramePools) -> Result<Self, Error> {
        let (map, cpus) = (Map::of(machine)?, machine.cpus());
        Ok(Frames {
            caches: PerCpu::try_new(cpus, |_| CacheLock::<M, _>::new(Cache::default()))?,
            pools: Pools::new(pools, machine, &map)?,
            reservations: Reservations::new(map.end())?,
            map,
            failures: Failures::new(),
        })
    }

    /// Labels the allocator's memory, once this stays where it is.
    pub(crate) fn label(&self) {
        self.caches.label("Frames.caches");
        self.reservations.label();
        self.pools.label();
    }

    /// Takes a frame; `None` if none is free. O(1), and O(CPUs) when memory is out.
    ///
    /// # Safety
    /// `machine` is the one whose frames these are, and they are given out here alone.
    #[inline(always)] // a call here shows in tests/costs.rs
    #[must_use = "a frame that is not freed is lost"]
    pub unsafe fn allocate(&self, machine: &M, content: Content) -> Option<Frame> {
        if self.failures.is_due() {
            return None;
        }
        let (frame, found) = self.take(content)?;
        machine::invariant!(
            M: found == Content::Any || is_zero(machine, frame),
            "{frame:?} was written after it was freed"
        );
        machine.allocated(frame);
        if content == Content::Zeroed && found == Content::Any {
            // SAFETY: the frame is the caller's, and no other task has it.
            unsafe { machine.zero(frame) };
        }
        Some(frame)
    }

    /// Gives back a frame that has `content`.
    ///
    /// # Safety
    /// The frame was given out by [`Frames::allocate`] or [`Frames::allocate_block`], is the
    /// caller's, and has this content; nothing uses it any more.
    #[inline]
    pub unsafe fn free(&self, machine: &M, frame: Frame, content: Content) {
        machine::invariant!(
            M: content == Content::Any || is_zero(machine, frame),
            "{frame:?} is freed as one of zeroes"
        );
        machine.freed(frame);
        self.put(iter::once(frame), content);
    }

    /// Gives frames of unknown content back under one lock acquisition.
    pub(crate) fn free_all(&self, machine: &M, frames: impl Iterator<Item = Frame>) {
        self.put(frames.inspect(|&frame| machine.freed(frame)), Content::Any);
    }

    /// Takes 512 contiguous frames of unknown content, aligned to 512 frames, as a page of 2 MiB
    /// needs. `None` if no block is whole ([`Frames::drain`] may make one so). O(1), and O(CPUs)
    /// when blocks are rare, without the call to the machine for each frame.
    ///
    /// They may be given back one by one, or all with [`Frames::free_block`].
    #[must_use = "a frame that is not freed is lost"]
    pub fn allocate_block(&self, machine: &M) -> Option<Frame> {
        if self.failures.is_due() {
            return None;
        }
        let first = self.take_block(|| ())?;
        frames_of(first).for_each(|frame| machine.allocated(frame));
        Some(first)
    }

    /// Gives a whole block back, by its first frame; it stays whole. O(1), without the call to the
    /// machine for each frame.
    ///
    /// # Safety
    /// As for [`Frames::free`], for each of its 512 frames.
    pub unsafe fn free_block(&self, machine: &M, first: Frame) {
        frames_of(first).for_each(|frame| machine.freed(frame));
        self.pools.of(first).lock().put_block(first);
    }

    /// Moves all free frames from the CPUs' caches to the pools, where they make up blocks: for a
    /// caller that needs a block, or when memory is short. Frames known to be zero are no longer
    /// known as such. O(frames in caches); a frame that is freed meanwhile may stay in a cache.
    pub fn drain(&self) {
        for cache in self.caches.iter() {
            let mut cache = cache.lock();
            let all = iter::from_fn(|| cache.pop(Content::Any));
            self.pools.put(all.map(|(frame, _)| frame));
        }
    }

    /// Takes a whole block from a pool that has one, this CPU's first, and does `then` before
    /// others can see that it is gone.
    fn take_block(&self, then: impl Fn()) -> Option<Frame> {
        self.pools.from(self.home()).find_map(|pool| {
            let mut pool = pool.lock();
            pool.take_block().inspect(|_| then())
        })
    }

    /// The index of this CPU's pool.
    fn home(&self) -> usize {
        self.pools.home(self.caches.index(&M::pin()))
    }

    /// Puts free frames into this CPU's cache.
    #[inline]
    fn put(&self, frames: impl Iterator<Item = Frame>, content: Content) {
        // The task is not pinned while it waits: the holder may be a task that is off this CPU.
        let own = self.caches.get(&M::pin());
        let mut cache = own.lock();
        for frame in frames {
            if let Some(surplus) = cache.push(frame, content) {
                self.pools.put(surplus);
            }
        }
    }

    /// Zeroes up to `count` of this CPU's plain frames, and returns their number. For idle time.
    ///
    /// # Safety
    /// `machine` is the one whose frames these are.
    pub unsafe fn zero_ahead(&self, machine: &M, count: usize) -> usize {
        let cache = self.caches.get(&M::pin());
        for done in 0..count {
            let Some(frame) = cache.lock().pop_plain() else {
                return done;
            };
            // SAFETY: the frame has just been taken from those that are free.
            unsafe { machine.zero(frame) };
            self.put(iter::once(frame), Content::Zeroed);
        }
        count
    }

    /// The number of frames.
    pub fn total(&self) -> usize {
        self.map.total()
    }

    /// One above the highest frame's number; the numbers below may have holes.
    pub(crate) fn end(&self) -> usize {
        self.map.end()
    }

    /// The frame at a place, below [`Frames::total`], among all frames.
    pub(crate) fn nth(&self, place: usize) -> Frame {
        self.map.nth(place)
    }

    /// The number of free frames; exact while no CPU allocates or frees. O(CPUs), and O(memory / 2
    /// MiB) while blocks are reserved for superpages.
    pub fn free_count(&self) -> usize {
        let cached: usize = self.caches.iter().map(|cache| cache.lock().len()).sum();
        let pooled: usize = self.pools.iter().map(|pool| pool.lock().len()).sum();
        cached + pooled + self.reservations.unused()
    }

    /// The number of frames that were in the calling CPU's cache a moment ago; reads no other CPU's
    /// line.
    pub(crate) fn at_hand(&self) -> usize {
        let own = self.caches.get(&M::pin());
        own.lock().len()
    }

    /// Takes a frame, and returns what is known of its content.
    #[inline]
    fn take(&self, content: Content) -> Option<(Frame, Content)> {
        let own = self.caches.get(&M::pin());
        let mut cache = own.lock();
        if let Some(found) = cache.pop(content) {
            return Some(found);
        }
        let found = self.refill(&mut cache, content);
        drop(cache);
        found.or_else(|| self.steal(content))
    }

    /// Fills this CPU's cache, which has run empty, from the first pool that has frames, and
    /// returns one of them.
    #[cold]
    fn refill(&self, cache: &mut Cache, content: Content) -> Option<(Frame, Content)> {
        self.pools.from(self.home()).find_map(|pool| {
            pool.lock().take(BATCH, |frame| cache.refill(frame));
            cache.pop(content)
        })
    }

    /// Takes a frame from any cache or reservation. The caller holds no cache's lock, so
    /// the locks are taken one at a time.
    #[cold]
    fn steal(&self, content: Content) -> Option<(Frame, Content)> {
        let mut round = 0;
        loop {
            let mut caches = self.caches.iter();
            if let Some(found) = caches.find_map(|cache| cache.lock().pop(content)) {
                return Some(found);
            }
            let before = self.reservations.made();
            let mut pooled = None;
            for pool in self.pools.iter() {
                pool.lock()
                    .take(1, |frame| pooled = Some((frame, Content::Any)));
                if pooled.is_some() {
                    return pooled;
                }
            }
            if before.live == 0 && before == self.reservations.made() {
                return None;
            }
            self.break_up_any(round);
            round = round.saturating_add(1);
        }
    }
}

/// Returns true if all of the frame is zero, for assertions of its owner.
fn is_zero<M: Memory>(machine: &M, frame: Frame) -> bool {
    let words = PAGE_SIZE / size_of::<u64>();
    // SAFETY: the frame is its owner's, the caller.
    unsafe { machine.find_word(frame, 0, words, !0) }.is_none()
}

/// The frames of the block that begins with `first`.
fn frames_of(first: Frame) -> impl Iterator<Item = Frame> {
    debug_assert!(
        first.index().is_multiple_of(BLOCK),
        "{first:?} begins no block"
    );
    (first.0..first.0 + BLOCK as u32).map(Frame)
}

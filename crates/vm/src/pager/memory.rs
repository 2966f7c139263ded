//! A store in the kernel's own memory.

use super::sheet::{CHUNK, Sheet};
use crate::lock::StoreLock;
use alloc::boxed::Box;
use core::ops::AddAssign;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Pager, PagerError, Platform, Truncate};
use sync::Padded;

/// The number of parts of the store, each with a lock of its own.
const SHARDS: u64 = 64;

const EIO: i32 = 5;
const EFBIG: i32 = 27;

/// Pages kept in the kernel's heap, which grows as they are written: a disk for tests and
/// for simulated machines. All pages exist, and are zero until they are written; pages that
/// were always zero take no memory.
///
/// Chunks of 32 pages are dealt out to 64 shards, each under a lock; a call copies page by
/// page, O(log of the chunks in a shard) for each, and O(chunks) for a new one that is not the
/// shard's last. A simulated CPU pays for the copying.
pub struct MemoryPager<M: Platform> {
    shards: Box<[Padded<StoreLock<M, Shard>>]>,
    /// The number of the call from now that fails; 0 means none does.
    fail_in: M::AtomicU64,
}

/// The data under the lock of a shard.
#[derive(Default)]
struct Shard {
    pages: Sheet,
    counts: PagerCounts,
}

/// The calls of a pager, failed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagerCounts {
    /// Calls that read.
    pub reads: u64,
    /// Pages they read.
    pub pages_read: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Pages they wrote, parts of pages included.
    pub pages_written: u64,
}

impl<M: Platform> MemoryPager<M> {
    /// An empty store.
    pub fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Padded(StoreLock::<M, _>::new(Shard::default())));
        MemoryPager {
            shards: shards.collect(),
            fail_in: M::AtomicU64::new(0),
        }
    }

    /// Makes the `nth` call from now fail (1 = the next) with `EIO`; 0 switches it off. A write
    /// that fails takes its pages with it: they are zero afterwards.
    pub fn fail_after(&self, nth: u64) {
        self.fail_in.store(nth, Ordering::Relaxed);
    }

    /// The calls so far; exact while none is under way.
    pub fn counts(&self) -> PagerCounts {
        let mut sum = PagerCounts::default();
        self.shards
            .iter()
            .for_each(|shard| sum += shard.lock().counts);
        sum
    }

    /// The number of pages that take memory. O(these).
    pub fn pages(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().pages.len())
            .sum()
    }

    fn shard(&self, page: u64) -> &StoreLock<M, Shard> {
        &self.shards[(page / CHUNK % SHARDS) as usize]
    }

    /// Counts a call, in the shard of its first page; an error if it must fail, or if there are no
    /// such pages.
    #[inline]
    fn begin(&self, shard: &mut Shard, first: u64, counts: PagerCounts) -> Result<(), PagerError> {
        shard.counts += counts;
        let pages = counts.pages_read + counts.pages_written;
        if first.checked_add(pages).is_none() {
            return Err(PagerError { errno: EFBIG });
        }
        if self.must_fail() {
            Err(PagerError { errno: EIO })
        } else {
            Ok(())
        }
    }

    fn must_fail(&self) -> bool {
        let mut left = self.fail_in.load(Ordering::Relaxed);
        while left != 0 {
            // Relaxed: a number and no more.
            let order = Ordering::Relaxed;
            match self.fail_in.compare_exchange(left, left - 1, order, order) {
                Ok(_) => return left == 1,
                Err(now) => left = now,
            }
        }
        false
    }
}

impl<M: Platform> Pager<M> for MemoryPager<M> {
    unsafe fn read(&self, machine: &M, first: u64, frames: &[Frame]) -> Result<(), PagerError> {
        let asked = PagerCounts {
            reads: 1,
            pages_read: frames.len() as u64,
            ..PagerCounts::default()
        };
        let mut shard = self.shard(first).lock();
        self.begin(&mut shard, first, asked)?;
        let mut locked = Some(shard);
        for (page, &frame) in (first..).zip(frames) {
            let shard = locked.take().unwrap_or_else(|| self.shard(page).lock());
            // SAFETY: so says the caller.
            unsafe { shard.pages.read(machine, page, frame) };
        }
        Ok(())
    }

    unsafe fn write(
        &self,
        machine: &M,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        let frames = &frames[..frames.len().min(bytes.div_ceil(PAGE_SIZE))];
        let asked = PagerCounts {
            writes: 1,
            pages_written: frames.len() as u64,
            ..PagerCounts::default()
        };
        let mut shard = self.shard(first).lock();
        let begun = self.begin(&mut shard, first, asked);
        let mut locked = Some(shard);
        for (index, &frame) in frames.iter().enumerate() {
            let page = first.wrapping_add(index as u64);
            let mut shard = locked.take().unwrap_or_else(|| self.shard(page).lock());
            if begun.is_err() {
                shard.pages.forget(page);
                continue;
            }
            let part = (bytes - index * PAGE_SIZE).min(PAGE_SIZE);
            // SAFETY: so says the caller.
            let written = unsafe { shard.pages.write(machine, page, frame, part) };
            written.map_err(|error| PagerError {
                errno: error.errno(),
            })?;
        }
        begun
    }
}

impl<M: Platform> Truncate<M> for MemoryPager<M> {
    fn truncate(&self, _machine: &M, bytes: u64) -> Result<(), PagerError> {
        if self.must_fail() {
            return Err(PagerError { errno: EIO });
        }
        let shards = self.shards.iter();
        shards.for_each(|shard| shard.lock().pages.truncate(bytes));
        Ok(())
    }
}

impl<M: Platform> Default for MemoryPager<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl AddAssign for PagerCounts {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.pages_read += other.pages_read;
        self.writes += other.writes;
        self.pages_written += other.pages_written;
    }
}

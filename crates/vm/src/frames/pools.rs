//! Pools, each with a part of memory.
//!
//! Frame *f* belongs to one pool for ever, so who frees it needs no look around. CPUs are
//! dealt over the pools by their numbers, [`CPUS`] to each; a CPU whose pool is empty goes round
//! the others. Pools are locked one at a time.

use super::block::BLOCK;
use super::pool::Pool;
use crate::lock::PoolLock;
use alloc::boxed::Box;
use machine::{Frame, Platform};
use sync::Padded;

/// CPUs that have a pool in common: so few that they seldom wait, and so many that not much memory
/// lies where others look last.
const CPUS: usize = 8;
/// The least memory of a pool, in blocks: as many as a reserve is kept of.
const LEAST: usize = 8;

/// The pools. Nothing but what their locks protect changes.
pub(super) struct Pools<M: Platform> {
    pools: Box<[Padded<PoolLock<M, Pool>>]>,
    /// Blocks of each but the last, which may have fewer.
    blocks: usize,
}

impl<M: Platform> Pools<M> {
    /// All of `frames` frames, for `cpus` CPUs.
    pub(super) fn new(cpus: usize, frames: usize) -> Self {
        let all = frames.div_ceil(BLOCK).max(1);
        let wanted = cpus.div_ceil(CPUS).min(all / LEAST).max(1);
        let blocks = all.div_ceil(wanted);
        let part = |number: usize| {
            let first = number * blocks * BLOCK;
            let pool = Pool::new(first..frames.min(first + blocks * BLOCK));
            let (at, bytes) = pool.memory();
            M::label(at, bytes, "Frames.pool");
            Padded(PoolLock::<M, _>::new(pool))
        };
        Pools {
            pools: (0..all.div_ceil(blocks)).map(part).collect(),
            blocks,
        }
    }

    /// Says what is where.
    pub(super) fn label(&self) {
        let at = self.pools.as_ptr().cast();
        M::label(at, size_of_val(&*self.pools), "Frames.pool");
    }

    /// The index of the pool that a CPU takes from first.
    pub(super) fn home(&self, cpu: usize) -> usize {
        cpu / CPUS % self.pools.len()
    }

    /// The pool that a frame belongs to.
    pub(super) fn of(&self, frame: Frame) -> &PoolLock<M, Pool> {
        &self.pools[self.index_of(frame)]
    }

    /// All pools.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PoolLock<M, Pool>> {
        self.from(0)
    }

    /// All pools, from one on.
    pub(super) fn from(&self, first: usize) -> impl Iterator<Item = &PoolLock<M, Pool>> {
        let (before, after) = self.pools.split_at(first);
        after.iter().chain(before).map(|pool| &**pool)
    }

    /// Puts free frames where they belong, neighbours under one locking.
    pub(super) fn put(&self, frames: impl IntoIterator<Item = Frame>) {
        let mut frames = frames.into_iter().peekable();
        while let Some(&first) = frames.peek() {
            let index = self.index_of(first);
            let part = index * self.frames()..(index + 1) * self.frames();
            let mut pool = self.pools[index].lock();
            while let Some(frame) = frames.next_if(|frame| part.contains(&frame.index())) {
                pool.put(frame);
            }
        }
    }

    fn index_of(&self, frame: Frame) -> usize {
        frame.index() / self.frames()
    }

    /// Frames of each pool but the last.
    fn frames(&self) -> usize {
        self.blocks * BLOCK
    }
}

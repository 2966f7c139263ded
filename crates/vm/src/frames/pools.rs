//! Pools, each with a part of memory.
//!
//! Each frame always belongs to the same pool, so freeing it needs no search. CPUs are assigned to
//! the pools by their numbers, [`CPUS`] to each, or by their nodes ([`FramePools`]); a CPU whose
//! pool is empty tries the others in turn. Pools are locked one at a time.

use super::block::BLOCK;
use super::map::Map;
use super::pool::Pool;
use crate::error::Error;
use crate::heap::push;
use crate::lock::PoolLock;
use crate::system::FramePools;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::ops::Range;
use machine::{Frame, Platform};
use sync::Padded;

/// The number of CPUs that share a pool: few enough that they seldom wait for each other, and
/// enough that the other pools, which they search last, do not hold much memory.
const CPUS: usize = 8;
/// The least memory of a pool, in blocks: as many as a reserve is kept of.
const LEAST: usize = 8;

/// The pools. Only data under their locks changes.
pub(super) struct Pools<M: Platform> {
    pools: Box<[Padded<PoolLock<M, Pool>>]>,
    /// The first frame of each pool, which begins a block; the pool has all frames up to the next
    /// one's first.
    starts: Vec<usize>,
    which: FramePools,
}

impl<M: Platform> Pools<M> {
    /// All frames of `map`, the machine's.
    pub(super) fn new(which: FramePools, machine: &M, map: &Map) -> Result<Self, Error> {
        let wanted = match which {
            FramePools::Near => machine.cpus().len().div_ceil(CPUS),
            FramePools::Node => machine.numa_nodes(),
            FramePools::One => 1,
        };
        Self::in_parts(which, wanted, map)
    }

    /// Divides all frames of `map` evenly among the `wanted` number of pools, or fewer if there is
    /// too little memory.
    fn in_parts(which: FramePools, wanted: usize, map: &Map) -> Result<Self, Error> {
        let all = map.total().div_ceil(BLOCK).max(1);
        let wanted = wanted.min(all / LEAST).max(1);
        let starts = starts(map, all.div_ceil(wanted) * BLOCK)?;
        let mut pools = Vec::new();
        pools.try_reserve_exact(starts.len())?;
        for (number, &start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(map.end());
            let pool = Pool::new(start..end, map.within(start..end))?;
            let (at, bytes) = pool.memory();
            M::label(at, bytes, "Frames.pool");
            pools.push(Padded(PoolLock::<M, _>::new(pool)));
        }
        Ok(Pools {
            pools: pools.into_boxed_slice(),
            starts,
            which,
        })
    }

    /// Labels the pools' memory.
    pub(super) fn label(&self) {
        let at = self.pools.as_ptr().cast();
        M::label(at, size_of_val(&*self.pools), "Frames.pool");
    }

    /// The index of the pool that `cpu`, on which the caller is, takes from first.
    pub(super) fn home(&self, cpu: usize) -> usize {
        let number = match self.which {
            FramePools::Near => cpu / CPUS,
            FramePools::Node => M::numa_node(),
            FramePools::One => 0,
        };
        number % self.pools.len()
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

    /// Puts free frames into their pools, neighbours under one lock acquisition.
    pub(super) fn put(&self, frames: impl IntoIterator<Item = Frame>) {
        let mut frames = frames.into_iter().peekable();
        while let Some(&first) = frames.peek() {
            let index = self.index_of(first);
            let part = self.part(index);
            let mut pool = self.pools[index].lock();
            while let Some(frame) = frames.next_if(|frame| part.contains(&frame.index())) {
                // A block belongs to one pool.
                let is_near = |next: &Frame| next.index() / BLOCK == frame.index() / BLOCK;
                pool.put_some(frame, iter::from_fn(|| frames.next_if(is_near)));
            }
        }
    }

    fn index_of(&self, frame: Frame) -> usize {
        self.starts.partition_point(|&start| start <= frame.index()) - 1
    }

    /// The frame numbers of a pool, holes included.
    fn part(&self, index: usize) -> Range<usize> {
        let end = self.starts.get(index + 1).copied().unwrap_or(usize::MAX);
        self.starts[index]..end
    }
}

/// The first frames of pools with at least `share` frames each, except perhaps the last.
fn starts(map: &Map, share: usize) -> Result<Vec<usize>, Error> {
    let mut starts = Vec::new();
    push(&mut starts, 0)?;
    let mut has = 0;
    for block in (0..map.end()).step_by(BLOCK) {
        if has >= share {
            push(&mut starts, block)?;
            has = 0;
        }
        let frames = map.within(block..block + BLOCK).map(|part| part.len());
        has += frames.sum::<usize>();
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::{Hosted, Options};
    use machine::PAGE_SIZE;
    use std::vec::Vec;

    /// The free frames of each pool, and the pool of each block.
    fn pools(cpus: usize, blocks: usize, holes: &[Range<usize>]) -> (Vec<usize>, Vec<usize>) {
        let frames = |at: usize| (at * BLOCK) as u32;
        let machine = Hosted::with_options(Options {
            reserved: holes
                .iter()
                .map(|it| frames(it.start)..frames(it.end))
                .collect(),
            ..Options::new(1, blocks * BLOCK * PAGE_SIZE)
        });
        let map = Map::of(&machine.expect("memory")).expect("a map");
        let pools =
            Pools::<Hosted>::in_parts(FramePools::Near, cpus.div_ceil(CPUS), &map).expect("room");
        let of = |block: usize| pools.index_of(Frame(frames(block)));
        let have = pools.iter().map(|pool| pool.lock().len()).collect();
        (have, (0..blocks).map(of).collect())
    }

    #[test]
    fn pools_have_equal_parts_of_what_there_is() {
        let (have, of) = pools(16, 64, &[]);
        assert_eq!(have, [32 * BLOCK; 2]);
        assert_eq!((of[31], of[32]), (0, 1));
        // All of one half is a hole, and some of the other.
        let (have, of) = pools(16, 64, &[0..32, 40..48]);
        assert_eq!(have, [12 * BLOCK; 2]);
        assert_eq!((of[0], of[51], of[52], of[63]), (0, 0, 1, 1));
        let (have, _) = pools(1_000, 64, &[1..32, 32..63]);
        assert_eq!(have, [2 * BLOCK], "too little for two");
    }
}

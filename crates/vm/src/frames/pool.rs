//! Free frames of a part of memory that are in no cache, in blocks of 2 MiB and in aligned runs.
//!
//! The descriptors of [`RUN`] neighbouring frames fill whole cache lines (256 bytes, four
//! lines). Frames go out run by run, so CPUs that were handed different batches write no
//! common line of descriptors. Frames that come back one by one make up their runs again,
//! and these their blocks; a page of 2 MiB needs a whole block.
//!
//! # The order in which frames go out
//! 1. Whole runs of broken blocks, most recently changed in kind first:
//!    that is the block being used up, or one with few free frames yet.
//! 2. The next whole block, while more of them are whole than the reserve: memory is
//!    plenty, and a run of two CPUs costs more than a block.
//! 3. Scraps, the remainders of broken runs: only now are frames of one run handed to
//!    several CPUs.
//! 4. The reserve.
//!
//! So a block stays whole as long as broken ones have runs, and a reserve of them as long
//! as there is any other frame.

#[cfg(test)]
mod tests;

use super::block::{BLOCK, Block, Kind};
use super::{BATCH, RUN};
use crate::error::Error;
use crate::heap::filled;
use alloc::boxed::Box;
use core::iter;
use core::ops::Range;
use machine::Frame;

/// The reserve is one block in this number, and at least one.
const RESERVE: usize = 8;
/// No block.
const NONE: u32 = u32::MAX;

// Otherwise a batch would break a run.
const _: () = assert!(BATCH.is_multiple_of(RUN));

/// The blocks, listed by kind. Nothing in it ever grows.
pub(super) struct Pool {
    /// The blocks of the pool's part of memory; frames that the VM does not have are never free.
    blocks: Box<[Block]>,
    /// The number of the first block.
    base: usize,
    /// The first block of each kind but [`Kind::Empty`].
    first: [u32; 3],
    /// Free frames.
    count: usize,
    /// Whole blocks.
    whole: usize,
}

impl Pool {
    /// The frames of `usable`, ascending, which lie in `part`; that begins with a block.
    pub(super) fn new(
        part: Range<usize>,
        usable: impl DoubleEndedIterator<Item = Range<usize>>,
    ) -> Result<Self, Error> {
        debug_assert!(part.start.is_multiple_of(BLOCK), "a block is of two pools");
        let mut pool = Pool {
            blocks: filled(part.len().div_ceil(BLOCK), || Block::EMPTY)?,
            base: part.start / BLOCK,
            first: [NONE; 3],
            count: 0,
            whole: 0,
        };
        // From the end, so frames go out in ascending order.
        usable.rev().for_each(|frames| pool.fill(frames));
        Ok(pool)
    }

    /// Adds neighbouring frames, whole blocks at once.
    fn fill(&mut self, frames: Range<usize>) {
        let first = frames.start.next_multiple_of(BLOCK).min(frames.end);
        let past = (frames.end - frames.end % BLOCK).max(first);
        (past..frames.end).for_each(|frame| self.put(Frame(frame as u32)));
        for first in (first..past).step_by(BLOCK).rev() {
            self.put_block(Frame(first as u32));
        }
        (frames.start..first).for_each(|frame| self.put(Frame(frame as u32)));
    }

    /// The pool's memory: where it begins, and its length in bytes.
    pub(super) fn memory(&self) -> (*const (), usize) {
        (self.blocks.as_ptr().cast(), size_of_val(&*self.blocks))
    }

    /// Free frames.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a frame. O(1).
    pub(super) fn put(&mut self, frame: Frame) {
        self.put_some(frame, iter::empty());
    }

    /// Adds `first`, and `rest`, which is of the same block. O(1) each.
    pub(super) fn put_some(&mut self, first: Frame, rest: impl Iterator<Item = Frame>) {
        let put = |block: &mut Block| {
            let frames = iter::once(first).chain(rest);
            frames.map(|frame| block.put(frame.index() % BLOCK)).count()
        };
        self.count += self.change(self.block_of(first), put);
        debug_assert!(self.is_sound(), "the counts do not fit together");
    }

    /// Returns true if its counts are consistent.
    fn is_sound(&self) -> bool {
        self.whole * BLOCK <= self.count && self.count <= self.blocks.len() * BLOCK
    }

    /// Adds a whole block, by its first frame. O(1).
    pub(super) fn put_block(&mut self, first: Frame) {
        debug_assert!(
            first.index().is_multiple_of(BLOCK),
            "{first:?} begins no block"
        );
        self.change(self.block_of(first), Block::fill);
        self.count += BLOCK;
        debug_assert!(self.is_sound(), "the counts do not fit together");
    }

    /// Takes a whole block out, and returns its first frame. O(1).
    pub(super) fn take_block(&mut self) -> Option<Frame> {
        let block = self.listed(Kind::Whole)?;
        self.change(block, Block::clear);
        self.count -= BLOCK;
        debug_assert!(self.is_sound(), "the counts do not fit together");
        Some(self.first_of(block))
    }

    /// Takes up to `wanted` frames out, at least one if any is free; stops before a whole run that
    /// would not be used up. O(wanted).
    pub(super) fn take(&mut self, wanted: usize, mut sink: impl FnMut(Frame)) {
        let mut left = wanted;
        while let Some((kind, block)) = self.next() {
            let breaks_a_run = kind != Kind::Scraps && left < RUN;
            if left == 0 || (breaks_a_run && left < wanted) {
                break;
            }
            let first = self.first_of(block);
            let sink = |offset| sink(Frame(first.0 + offset as u32));
            left -= self.change(block, |block| block.take(left, sink));
        }
        self.count -= wanted - left;
        debug_assert!(self.is_sound(), "the counts do not fit together");
        debug_assert!(
            wanted == 0 || left < wanted || self.count == 0,
            "no frame was found, and some are free"
        );
    }

    /// The place of a frame's block.
    fn block_of(&self, frame: Frame) -> usize {
        debug_assert!(
            (self.base..self.base + self.blocks.len()).contains(&(frame.index() / BLOCK)),
            "{frame:?} is another pool's"
        );
        frame.index() / BLOCK - self.base
    }

    /// The first frame of the block at a place.
    fn first_of(&self, block: usize) -> Frame {
        Frame(((self.base + block) * BLOCK) as u32)
    }

    /// The block that the next frame comes from.
    fn next(&self) -> Option<(Kind, usize)> {
        let kinds = if self.whole > self.blocks.len().div_ceil(RESERVE) {
            [Kind::Runs, Kind::Whole, Kind::Scraps]
        } else {
            [Kind::Runs, Kind::Scraps, Kind::Whole]
        };
        let listed = |kind| Some((kind, self.listed(kind)?));
        kinds.into_iter().find_map(listed)
    }

    /// The first block of a kind.
    fn listed(&self, kind: Kind) -> Option<usize> {
        let first = self.first[kind as usize];
        (first != NONE).then_some(first as usize)
    }

    /// Changes a block, and its place if that changes its kind.
    fn change<R>(&mut self, block: usize, edit: impl FnOnce(&mut Block) -> R) -> R {
        let before = self.blocks[block].kind();
        let result = edit(&mut self.blocks[block]);
        let after = self.blocks[block].kind();
        if before != after {
            self.unlink(block, before);
            self.link(block, after);
        }
        result
    }

    fn link(&mut self, block: usize, kind: Kind) {
        if kind == Kind::Empty {
            return;
        }
        let next = core::mem::replace(&mut self.first[kind as usize], block as u32);
        self.blocks[block].next = next;
        self.blocks[block].previous = NONE;
        if next != NONE {
            debug_assert_eq!(
                self.blocks[next as usize].previous, NONE,
                "the first block of a kind has one before it"
            );
            self.blocks[next as usize].previous = block as u32;
        }
        self.whole += usize::from(kind == Kind::Whole);
    }

    fn unlink(&mut self, block: usize, kind: Kind) {
        if kind == Kind::Empty {
            return;
        }
        let Block { next, previous, .. } = self.blocks[block];
        let before = match previous {
            NONE => &mut self.first[kind as usize],
            _ => &mut self.blocks[previous as usize].next,
        };
        debug_assert_eq!(*before, block as u32, "a block is on another kind's list");
        *before = next;
        if next != NONE {
            self.blocks[next as usize].previous = previous;
        }
        self.whole -= usize::from(kind == Kind::Whole);
    }
}

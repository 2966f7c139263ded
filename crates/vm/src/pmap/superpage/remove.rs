//! Taking a whole superpage away.

use super::{frame_at, table};
use crate::page::Page;
use crate::pmap::Pmap;
use crate::pmap::flush::Gather;
use crate::pmap::remove::Block;
use crate::policy::{Invalidation, PageQueues, Policies};
use crate::tree::{Kind, Part, Size};
use crate::vm::Vm;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Platform, pte};

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// Clears the superpage that `part`, all of its slot, is mapped by, and gathers what must be
    /// flushed and freed. As for a single page, each page looks unmapped from now on and is not:
    /// the block has it noted.
    pub(in crate::pmap) fn take_superpage(
        &self,
        part: &mut Part<'_, M, P>,
        block: &Block<'_, M, P>,
        gather: &mut Gather,
    ) {
        let leaf = part.leaf();
        let start = part.range().start;
        let first = self.superpage_frame(part);
        let mut run = self.lock_run(first);
        // No walker reaches the table yet.
        leaf.get().inspect(|&leaf| self.vm.machine().zero(leaf));
        // AcqRel with the walker's exchange: what it has marked is seen.
        let old = self.superpage(start).swap(table(leaf), Ordering::AcqRel);
        part.set_size(Size::Pages);
        part.add(Kind::Private, -(pte::ENTRIES as i16));
        self.count_resident(-(pte::ENTRIES as isize));
        // SAFETY: gone with the round.
        while let Some((index, mut list)) = unsafe { run.pop() } {
            let frame = frame_at(first, index);
            list.set_flags(Page::<M, P::Invalidation>::harvest(old));
            let page = &self.vm.page(frame).invalidation;
            self.vm.invalidation().note(block, frame, page);
            let address = start + index * PAGE_SIZE;
            // SAFETY: the mapping's, so it is on this list.
            unsafe { self.unlist(&mut list, part, address) };
        }
        gather.superpage(start, first);
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Drops a reference to each page of the block that begins with `first`; what nobody
    /// else has goes back to the pool, as a whole if that is all.
    pub(in crate::pmap) fn release_block(&self, first: Frame) {
        let pages = || (0..pte::ENTRIES).map(|index| frame_at(first, index));
        let mut freed = [0_u64; pte::ENTRIES / 64];
        for (index, frame) in pages().enumerate() {
            freed[index / 64] |= u64::from(self.page(frame).release()) << (index % 64);
        }
        if freed.iter().all(|&bits| bits == u64::MAX) {
            pages().for_each(|frame| self.queues().remove(frame));
            return self.frames().free_block(self.machine(), first);
        }
        for (index, frame) in pages().enumerate() {
            if freed[index / 64] & 1 << (index % 64) != 0 {
                self.free_page(frame, false);
            }
        }
    }
}

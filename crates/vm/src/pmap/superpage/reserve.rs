//! Filling a slot with the frames of a block, so that it can become a superpage.

use crate::error::Error;
use crate::pmap::Pmap;
use crate::prot::Prot;
use crate::system::System;
use crate::tree::{Kind, Part, Size};
use machine::{Atomic, Frame, Memory, Ordering, pte};

impl<S: System> Pmap<S> {
    /// Maps a page of zeroes at the start of `part`, where nothing is mapped, from the block that
    /// its slot has reserved; the slot's first page reserves one. Returns `None` without a block;
    /// then any frame will do. With the last page the slot becomes a superpage.
    ///
    /// The page is zeroed under the slot's lock: only this fault may map its frame here, so
    /// another fault on the same page would have to wait for it or spoil the run.
    pub(crate) fn fill_in_place(
        &self,
        part: &mut Part<'_, S>,
        prot: Prot,
    ) -> Result<Option<Frame>, Error> {
        let begins = part.is_vacant() && part.is_uniform_private();
        if part.size() == Size::Pages && !begins {
            return Ok(None);
        }
        self.prepare(part)?;
        let leaf = part.leaf().get().expect("it is prepared");
        let index = pte::index(part.range().start, 0);
        let first = if part.is_vacant() {
            self.vm.frames().reserve(leaf)
        } else {
            self.block_of(leaf, index)
        };
        let taken = first.and_then(|first| {
            let frames = self.vm.frames();
            frames.take_reserved(self.vm.machine(), leaf, first, index)
        });
        let Some(frame) = taken else {
            part.set_size(Size::Pages);
            return Ok(None);
        };
        debug_assert!(
            frame.index() % pte::ENTRIES == index,
            "{frame:?} is not at its place of a run"
        );
        part.set_size(Size::Run);
        // SAFETY: the frame was reserved for this page, which has not begun.
        unsafe { self.vm.machine().zero(frame) };
        self.vm.page(frame).begin();
        self.make(part, frame, Kind::Private, prot);
        self.promote(part);
        Ok(Some(frame))
    }

    /// Gives back the unused frames that the slot of `part` has reserved.
    pub(super) fn end_reservation(&self, part: &Part<'_, S>) {
        machine::invariant!(
            S::Machine: part.size() == Size::Run,
            "a slot without a run has nothing reserved"
        );
        let leaf = part.leaf().get().expect("a run has a table");
        let index = pte::index(part.range().start, 0);
        if let Some(first) = self.block_of(leaf, index) {
            self.vm.frames().break_up(leaf, first);
        }
    }

    /// The block of a run, found by the pages that it has, those next to `index` first. O(1) as a
    /// rule, O(512) where pages come in no order.
    fn block_of(&self, leaf: Frame, index: usize) -> Option<Frame> {
        let near = [index, index.wrapping_sub(1), index + 1];
        let near = near.into_iter().filter(|&at| at < pte::ENTRIES);
        let machine = self.vm.machine();
        let word = |at| {
            // SAFETY: a leaf table, whose slot is locked.
            let word = unsafe { machine.word(leaf, at) };
            (at, word.load(Ordering::Relaxed))
        };
        let found = near.map(word).find(|(_, bits)| bits & pte::PRESENT != 0);
        // SAFETY: as above.
        let anywhere = || unsafe { machine.find_word(leaf, 0, pte::ENTRIES, pte::PRESENT) };
        let (at, bits) = found.or_else(anywhere)?;
        debug_assert!(
            pte::frame(bits).index() % pte::ENTRIES == at,
            "a run has a page that is not at its place"
        );
        Some(Frame(pte::frame(bits).0 - at as u32))
    }
}

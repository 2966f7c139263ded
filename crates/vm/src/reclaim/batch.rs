//! Writes private pages to the swap space, several at once.

use crate::frames::Content;
use crate::object::PageRef;
use crate::page::{Identity, Page};
use crate::pmap::How;
use crate::swap::{CLUSTER, Eviction, SwapSpace};
use crate::system::System;
use crate::vm::Vm;
use core::mem::{self, MaybeUninit};
use machine::Frame;

/// Pages that are swapped out together: each is marked as laundry, and the batch has a reference to
/// it.
pub(crate) struct Batch<'a, S: System> {
    vm: &'a Vm<S>,
    /// The first `len` elements of both arrays are initialized: most batches are small.
    frames: [MaybeUninit<Frame>; CLUSTER],
    ways: [MaybeUninit<Way>; CLUSTER],
    len: usize,
}

/// The swap slot that a page goes to, and how far it is written.
#[derive(Clone, Copy)]
struct Way {
    /// The page's slot, to which the reclaimer has a reference.
    slot: Option<u32>,
    saved: Saved,
}

/// Says if a slot has its page's content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    /// The slot has the content.
    Written,
    /// The content is still to be written.
    New,
    /// The content is still to be written, and a write has failed: the page is [`Page::UNWRITTEN`].
    Failed,
}

impl Way {
    const NONE: Way = Way {
        slot: None,
        saved: Saved::Written,
    };

    /// The slot, if it is to be written.
    #[inline]
    fn unwritten(self) -> Option<u32> {
        self.slot.filter(|_| self.saved != Saved::Written)
    }
}

impl<'a, S: System> Batch<'a, S> {
    #[inline]
    pub(crate) fn new(vm: &'a Vm<S>) -> Self {
        Batch {
            vm,
            frames: [const { MaybeUninit::uninit() }; CLUSTER],
            ways: [const { MaybeUninit::uninit() }; CLUSTER],
            len: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == CLUSTER
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a page that is marked as laundry. There must be room.
    pub(super) fn push(&mut self, held: PageRef<'a, S>) {
        debug_assert!(!self.is_full(), "there is no room for a page more");
        machine::invariant!(
            // No other task clears that flag.
            S::Machine: self.vm.page(held.frame()).flags() & Page::<S>::LAUNDRY != 0,
            "another reclaimer may have the page"
        );
        self.frames[self.len].write(held.into_frame());
        self.ways[self.len].write(Way::NONE);
        self.len += 1;
    }

    /// Takes the pages out; their references are then the caller's.
    #[inline]
    fn take(&mut self) -> (&[Frame], &mut [Way]) {
        let len = mem::take(&mut self.len);
        let (frames, ways) = (&self.frames[..len], &mut self.ways[..len]);
        // SAFETY: the first `len` were written.
        unsafe { (frames.assume_init_ref(), ways.assume_init_mut()) }
    }
}

impl<S: System> Drop for Batch<'_, S> {
    fn drop(&mut self) {
        let vm = self.vm;
        let (frames, _) = self.take();
        frames.iter().for_each(|&frame| vm.release_page(frame));
    }
}

impl<S: System> Vm<S> {
    /// Writes the pages of the batch out, and empties it. Returns the number of frames freed.
    pub(crate) fn launder(&self, batch: &mut Batch<'_, S>) -> usize {
        let (frames, ways) = batch.take();
        if let Some(swap) = self.swap_space() {
            self.give_slots(swap, frames, ways);
            for (&frame, way) in frames.iter().zip(&mut *ways) {
                self.unmap_outgoing(swap, frame, way);
            }
            self.write_out(swap, frames, ways);
        }
        let pages = frames.iter().zip(&*ways);
        pages
            .map(|(&frame, &way)| usize::from(self.finish(frame, way)))
            .sum()
    }

    /// Finds the slots of pages that have one, and gives new ones to private pages as long as slots
    /// are free; pages that follow one another get neighbouring slots if possible.
    fn give_slots(&self, swap: &SwapSpace<S::Machine>, frames: &[Frame], ways: &mut [Way]) {
        let is_private = |&&frame: &&Frame| self.page(frame).identity() == Identity::Private;
        let (mut next, mut is_full) = (0, false);
        while next < frames.len() {
            let end = next + frames[next..].iter().take_while(is_private).count();
            while next < end && !is_full {
                let Some(slots) = swap.allocate(&frames[next..end]) else {
                    is_full = true;
                    break;
                };
                for slot in slots {
                    self.give_slot(slot, frames[next], &mut ways[next]);
                    next += 1;
                }
            }
            next = end;
            if let Some(&known) = frames.get(next) {
                self.find_slot(swap, known, &mut ways[next]);
                next += 1;
            }
        }
    }

    /// Finds the slot of a page that has one already.
    fn find_slot(&self, swap: &SwapSpace<S::Machine>, frame: Frame, way: &mut Way) {
        let page = self.page(frame);
        if let Identity::Swap(slot) = page.identity()
            && swap.retain_if(slot, frame)
        {
            way.slot = Some(slot);
            if page.flags() & Page::<S>::UNWRITTEN != 0 {
                way.saved = Saved::Failed;
            }
        }
    }

    /// Puts a private page into the cache of a new slot.
    #[inline]
    fn give_slot(&self, slot: u32, frame: Frame, way: &mut Way) {
        debug_assert!(way.slot.is_none(), "a page gets two slots");
        let page = self.page(frame);
        // The cache's reference.
        page.retain();
        let mut list = self.lock_pv(frame);
        machine::invariant!(
            S::Machine: page.identity() == Identity::Private,
            "a page that is known elsewhere goes to the swap space"
        );
        list.take_flags(Page::<S>::LAZY);
        page.set_identity(Identity::Swap(slot));
        drop(list);
        (way.slot, way.saved) = (Some(slot), Saved::New);
    }

    /// Replaces the page's mappings by entries that name its slot.
    fn unmap_outgoing(&self, swap: &SwapSpace<S::Machine>, frame: Frame, way: &mut Way) {
        let Some(slot) = way.slot else { return };
        machine::invariant!(
            // The reclaimer holds the page, and a reference to the slot.
            S::Machine: swap.holds(slot, frame),
            "a page goes to a slot that has another"
        );
        let how = How {
            slot: Some(slot),
            ..How::RECLAIM
        };
        let removed = self.remove_as(frame, None, how);
        // A page whose only mapping is locked in memory may be written at any time: it stays
        // private.
        if removed.is_locked && swap.references(slot) == 1 {
            way.slot = None;
            self.release_swapped(slot);
        }
    }

    /// Writes the pages that are not written yet, those in neighbouring slots at once.
    fn write_out(&self, swap: &SwapSpace<S::Machine>, frames: &[Frame], ways: &mut [Way]) {
        let mut next = 0;
        while next < frames.len() {
            let Some(first) = ways[next].unwritten() else {
                next += 1;
                continue;
            };
            let both = (first..).zip(&ways[next..]);
            let follows = |&(slot, way): &(u32, &Way)| way.unwritten() == Some(slot);
            let run = next..next + both.take_while(follows).count();
            // SAFETY: the batch holds the pages.
            let written = unsafe { swap.write(self.machine(), first, &frames[run.clone()]) };
            next = run.end;
            for (&frame, way) in frames[run.clone()].iter().zip(&mut ways[run]) {
                let content = match written {
                    Ok(()) => Saved::Written,
                    Err(_) => Saved::Failed,
                };
                self.mark(frame, mem::replace(&mut way.saved, content), content);
            }
        }
    }

    /// Updates the page's [`Page::UNWRITTEN`] flag if a write has failed, or a later one has
    /// succeeded.
    #[inline]
    fn mark(&self, frame: Frame, old: Saved, new: Saved) {
        let unwritten = Page::<S>::UNWRITTEN;
        match (old, new) {
            (Saved::Failed, Saved::Written) => {
                self.lock_pv(frame).take_flags(unwritten);
            }
            (Saved::New, Saved::Failed) => self.lock_pv(frame).set_flags(unwritten),
            _ => {}
        }
    }

    /// Frees the page if no task wants it any more. Returns true if it did.
    fn finish(&self, frame: Frame, way: Way) -> bool {
        if let (Some(slot), Some(swap)) = (way.slot, self.swap_space())
            && way.saved == Saved::Written
        {
            // The cache's reference and this reclaimer's.
            let freeze = || self.page(frame).freeze(2);
            if swap.uncache_and_release(slot, frame, freeze) == Eviction::Evicted {
                self.free_page(frame, Content::Any);
                return true;
            }
        }
        let mut list = self.lock_pv(frame);
        let laundry = list.take_flags(Page::<S>::LAUNDRY);
        debug_assert!(laundry != 0, "another reclaimer had the page");
        drop(list);
        self.release_page(frame);
        if let Some(slot) = way.slot {
            self.release_swapped(slot);
        }
        false
    }
}

//! Pages out to the swap space.

use crate::page::{Identity, Page};
use crate::pmap::How;
use crate::policy::Policies;
use crate::swap::{CLUSTER, Eviction};
use crate::vm::{Hold, Vm};
use core::mem;
use machine::{Frame, Platform};

/// Pages that go out together: held, and marked as laundry.
pub(crate) struct Batch<M: Platform, P: Policies<M>> {
    pages: [Option<Outgoing<M, P>>; CLUSTER],
    len: usize,
}

/// A page on its way out.
struct Outgoing<M: Platform, P: Policies<M>> {
    hold: Hold<M, P>,
    /// Its slot, of which the reclaimer has a reference.
    slot: Option<u32>,
    /// It has to be written.
    fresh: bool,
}

impl<M: Platform, P: Policies<M>> Batch<M, P> {
    pub(crate) fn new() -> Self {
        Batch {
            pages: [const { None }; CLUSTER],
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
    pub(super) fn push(&mut self, hold: Hold<M, P>) {
        self.pages[self.len] = Some(Outgoing {
            hold,
            slot: None,
            fresh: false,
        });
        self.len += 1;
    }
}

impl<M: Platform, P: Policies<M>> Vm<M, P> {
    /// Sends the pages of the batch out; how many frames that freed. The batch is empty
    /// then.
    pub(crate) fn launder(&self, batch: &mut Batch<M, P>) -> usize {
        let pages = &mut batch.pages[..mem::take(&mut batch.len)];
        self.give_slots(pages);
        for page in pages.iter_mut().flatten() {
            self.unmap_outgoing(page);
        }
        self.write_out(pages);
        let outgoing = pages.iter_mut().filter_map(Option::take);
        outgoing.map(|page| usize::from(self.finish(page))).sum()
    }

    /// Gives each page a slot: the one it has, or a new one. Pages without are left alone.
    fn give_slots(&self, pages: &mut [Option<Outgoing<M, P>>]) {
        let Some(swap) = self.swap_space() else {
            return;
        };
        for page in pages.iter_mut().flatten() {
            let frame = page.hold.frame();
            if let Identity::Swap(slot) = self.page(frame).identity()
                && swap.retain_if(slot, frame)
            {
                let unwritten = Page::<M, P::Invalidation>::UNWRITTEN;
                page.fresh = self.page(frame).flags() & unwritten != 0;
                page.slot = Some(slot);
            }
        }
        let is_new = |page: &&mut Outgoing<M, P>| {
            page.slot.is_none()
                && self.page(page.hold.frame()).identity() == Identity::Private
        };
        let mut new = pages.iter_mut().flatten().filter(is_new).peekable();
        while new.peek().is_some() {
            let _ = &mut new;
            break;
        }
    }
}

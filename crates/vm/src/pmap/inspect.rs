//! A report of page-table entries.

use super::Pmap;
use super::entry;
use super::shared::Kept;
use crate::object::Attachment;
use crate::page::{Page, PvList};
use crate::pv::Pv;
use crate::system::System;
use crate::tree::{Kind, Part};
use core::ptr;
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, VaRange, pte};

/// An entry that is not empty, and the state of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A page is mapped.
    Page(SeenPage),
    /// The page is in this slot of the swap space.
    Swapped(u32),
}

/// A page that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenPage {
    pub(crate) frame: Frame,
    pub(crate) kind: Kind,
    /// The number of its mappings, in all spaces.
    pub(crate) mappings: usize,
    /// True if it has been written since its dirtiness was last taken.
    pub(crate) dirty: bool,
    /// True if it has been used since the last look.
    pub(crate) referenced: bool,
    /// True if its owner has given it up, and it has not been written since.
    pub(crate) lazy: bool,
}

impl<S: System> Pmap<S> {
    /// The pages that are mapped in `part`, in order, with their addresses.
    #[inline]
    pub(crate) fn pages(
        &self,
        part: &Part<'_, S>,
    ) -> impl Iterator<Item = (usize, Frame)> + use<'_, S> {
        let entries = self.used(part.leaf(), part.range());
        let present = entries.filter(|&(_, bits)| bits & pte::PRESENT != 0);
        present.map(|(address, bits)| (address, pte::frame(bits)))
    }

    /// The entries of `part`, in order, with their addresses. Takes the PV lock of each page for
    /// a moment.
    pub(crate) fn inspect(&self, part: Part<'_, S>) -> impl Iterator<Item = (usize, Seen)> {
        let entries = self.used(part.leaf(), part.range());
        entries.filter_map(move |(address, _)| Some((address, self.see(&part, address)?)))
    }

    /// The entry at `address` of `part`, if it is not empty.
    fn see(&self, part: &Part<'_, S>, address: usize) -> Option<Seen> {
        let leaf = part.leaf().get()?;
        let page = part.again(VaRange::sized(address, PAGE_SIZE));
        // The table of a superpage only has the frames. Relaxed: marks are hints.
        let marks = self.mapping(&page, leaf).load(Ordering::Relaxed);
        let (bits, list) = match self.keep(self.entry(leaf, 0, address)) {
            Kept::Empty => return None,
            Kept::Swapped(slot) => return Some(Seen::Swapped(slot)),
            Kept::Page(bits, list) => (bits, list),
        };
        let frame = pte::frame(bits);
        let known = self.vm.page(frame).flags() | Page::<S>::harvest(marks);
        let is = |flag| known & flag != 0;
        let dirty = is(Page::<S>::DIRTY);
        let kind = entry::kind(bits);
        let mappings = if self.is_listed(kind) {
            self.count_listed(&list)
        } else {
            // The slot's lock keeps the entry as it is.
            drop(list);
            self.count_attached(&page, frame)
        };
        Some(Seen::Page(SeenPage {
            frame,
            kind,
            mappings,
            dirty,
            referenced: is(Page::<S>::REFERENCED),
            lazy: is(Page::<S>::LAZY) && !dirty,
        }))
    }

    /// The number of mappings on `list`.
    fn count_listed(&self, list: &PvList<'_, S>) -> usize {
        // SAFETY: the list is locked.
        let mappings = |pv: Pv| unsafe { self.vm.count_of(pv, &self.vm.members_of(pv)) };
        list.iter(self.vm.machine()).map(mappings).sum()
    }

    /// The number of mappings that the object's page in `frame`, which is mapped at the start of
    /// `part`, had a moment ago. A slot that is busy counts as one, such as another slot of this
    /// space that the caller has locked.
    fn count_attached(&self, part: &Part<'_, S>, frame: Frame) -> usize {
        let at = part.range().start;
        let Some(attached) = part.first().and_then(|mapped| mapped.attachment) else {
            return 1;
        };
        let (index, mut count) = (attached.index(at), 0);
        let see = |pmap: &Self, to: &Attachment<S>| {
            let address = to.address(index);
            let is_there = address.is_some_and(|address| {
                let page = VaRange::sized(address, PAGE_SIZE);
                let is_here = ptr::eq(pmap, self) && part.slot_range().common(page) == page;
                if is_here {
                    self.entry_at(&part.again(page)).maps(frame)
                } else {
                    pmap.may_map(page, frame)
                }
            });
            count += usize::from(is_there);
        };
        // SAFETY: owners are pmaps, as `Object::attach` says.
        unsafe { attached.object().visit_mappers(index..index + 1, see) };
        count.max(1)
    }

    /// Returns true if the entry of `page` maps `frame`, or its slot is busy.
    fn may_map(&self, page: VaRange, frame: Frame) -> bool {
        let locked = self.tree.around(page.start).more().try_lock();
        locked.is_none_or(|mut locked| {
            let mut parts = locked.parts_of(page);
            parts.any(|part| self.entry_at(&part).maps(frame))
        })
    }
}

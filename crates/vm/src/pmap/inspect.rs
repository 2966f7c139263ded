//! What entries say, told.

use super::Pmap;
use super::entry;
use super::shared::Kept;
use crate::page::Page;
use crate::policy::Policies;
use crate::pv::Pv;
use crate::tree::{Kind, Part};
use machine::{Atomic, Frame, Ordering, PAGE_SIZE, Platform, VaRange, pte};

/// An entry that says something, and what is known of its page.
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
    /// In how many places, in all spaces.
    pub(crate) mappings: usize,
    /// Written since it was last taken for clean.
    pub(crate) dirty: bool,
    /// Used since it was last looked at.
    pub(crate) referenced: bool,
    /// Given up by its owner, and not written since.
    pub(crate) lazy: bool,
}

impl<M: Platform, P: Policies<M>> Pmap<M, P> {
    /// The entries of `part`, in order, with their addresses. Takes the PV lock of each page for
    /// a moment.
    pub(crate) fn inspect(&self, part: Part<'_, M, P>) -> impl Iterator<Item = (usize, Seen)> {
        let entries = self.used(part.leaf(), part.range());
        entries.filter_map(move |(address, _)| Some((address, self.see(&part, address)?)))
    }

    /// What the entry at `address` of `part` says, if anything.
    fn see(&self, part: &Part<'_, M, P>, address: usize) -> Option<Seen> {
        let leaf = part.leaf().get()?;
        let page = part.again(VaRange::sized(address, PAGE_SIZE));
        // Of a superpage the table tells the frames only. Relaxed: marks are hints.
        let marks = self.mapping(&page, leaf).load(Ordering::Relaxed);
        let (bits, list) = match self.keep(self.entry(leaf, 0, address)) {
            Kept::Empty => return None,
            Kept::Swapped(slot) => return Some(Seen::Swapped(slot)),
            Kept::Page(bits, list) => (bits, list),
        };
        let frame = pte::frame(bits);
        let machine = self.vm.machine();
        // SAFETY: the list is locked.
        let mappings = |pv: Pv| unsafe { self.vm.members_of(pv) }.all().len();
        let known = self.vm.page(frame).flags() | Page::<M, P::Invalidation>::harvest(marks);
        let is = |flag| known & flag != 0;
        let dirty = is(Page::<M, P::Invalidation>::DIRTY);
        Some(Seen::Page(SeenPage {
            frame,
            kind: entry::kind(bits),
            mappings: list.iter(machine).map(mappings).sum(),
            dirty,
            referenced: is(Page::<M, P::Invalidation>::REFERENCED),
            lazy: is(Page::<M, P::Invalidation>::LAZY) && !dirty,
        }))
    }
}
